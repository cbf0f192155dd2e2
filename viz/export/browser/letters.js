/** Resolves once the file's own letters can be drawn, or cannot: text that is measured before is measured in others. */
export const letters = () => Promise.allSettled([...document.fonts].map((face) => face.load()));
