// The step that the decode player of a page is at, from 0, while there is one: a card of another word is out of date.
const NAME = "decodingStep";

/** Say at which step the player is; null once it is gone. */
export function tellStep(step) {
  if (step === null) delete document.documentElement.dataset[NAME];
  else document.documentElement.dataset[NAME] = step;
  document.dispatchEvent(new Event(NAME));
}

/** Have `hear(step)` hear of the step, null where there is no player, now and whenever it changes; returns its end. */
export function hearStep(hear) {
  const tell = () => {
    const step = document.documentElement.dataset[NAME];
    hear(step === undefined ? null : Number(step));
  };
  document.addEventListener(NAME, tell);
  tell();
  return () => document.removeEventListener(NAME, tell);
}
