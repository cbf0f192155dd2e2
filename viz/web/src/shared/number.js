/** The language that is spoken; bundle.py declares it. */
export const LANGUAGE = MESSAGES.language;

/** A number, written in English and without thousands, as the language writes it, its minus sign as wide as a digit. */
export const written = (text) => (LANGUAGE === "de" ? text.replace(".", ",").replace("%", "\u202f%") : text).replaceAll("-", "−");

/** A whole number with its thousands apart. */
export const grouped = (value) => value.toLocaleString(LANGUAGE);
