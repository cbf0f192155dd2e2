/**
 * A message in the reader's language, with values in its {fields}. Python declares MESSAGES before a script: the language,
 * and the translations of the literal messages in it (component_scripts.py), so a message stands here as one literal.
 */
export const say = (message, values = {}) => (MESSAGES.said[message] ?? message).replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** The same of a message whose words depend on the number `count`, which stands in it as {count}. */
export const sayMany = (one, many, count, values = {}) => say(count === 1 ? one : many, { count, ...values });

/** Whole sentences one after the other, as the language parts them; empty ones are left out. */
export const sentences = (...texts) => texts.filter(Boolean).reduce((before, next) => (before ? say("{before} {next}", { before, next }) : next), "");

/** Items in a row, as the language parts them. */
export const listed = (items) => items.join(say(", "));

/** The language that is spoken; component_scripts.py declares it. */
export const LANGUAGE = MESSAGES.language;

/** A number, written in English and without thousands, as the language writes it, its minus sign as wide as a digit. */
export const written = (text) => (LANGUAGE === "de" ? text.replace(".", ",").replace("%", "\u202f%") : text).replaceAll("-", "−");

/** A whole number with its thousands apart. */
export const grouped = (value) => value.toLocaleString(LANGUAGE);
