/** Milliseconds without a key from which what stands in the box is translated, before Enter. */
const PAUSE = 300;
const BOX = ".st-key-sentence textarea";

/** What the page reads in a box: a line break is a space (sentence_input). */
const textOf = (box) => box.value.replace(/\r\n?|\n/g, " ");
const paint = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

/**
 * Ask for the translation of what is typed, from a pause on, or at once when it is submitted: what the page draws of
 * it comes later. Until then the rest of the page is of the sentence before; the style sheet shows it so by
 * `data-previewed`. Where Streamlit itself serves the page there is no preview.
 *
 * @param {{ model: string, language: string, sentence: string }} drawn what the page has drawn
 * @param {{ show: (bytes: Uint8Array) => void, restore: () => void }} picture draws what is answered, or what was drawn
 */
export function previewTyping({ model, language, sentence }, { show, restore }) {
  const page = document.documentElement;
  const listening = new AbortController();
  let [timer, asking, asked, answered, shown] = [0, new AbortController(), "", Promise.resolve(), false];

  const stop = () => {
    clearTimeout(timer);
    asking.abort();
    asked = "";
  };
  const ask = async (text, signal) => {
    try {
      const answer = await fetch(`./translation-preview?${new URLSearchParams({ model, language, sentence: text })}`, { signal });
      if (!answer.headers.get("Content-Type")?.includes("octet-stream")) return; // Streamlit answers with its page.
      const bytes = new Uint8Array(await answer.arrayBuffer());
      if (signal.aborted) return;
      shown = true;
      page.dataset.previewed = "";
      show(bytes);
    } catch {
      // Typed on, or the server is gone: the page answers after Enter, or says so.
    }
  };
  const begin = (text) => {
    stop();
    [asking, asked] = [new AbortController(), text];
    answered = ask(text, asking.signal);
  };
  const isBox = ({ target, isComposing }) => !isComposing && target.closest?.(BOX);
  const leave = () => {
    shown = false;
    delete page.dataset.previewed;
  };
  const type = (event) => {
    if (!isBox(event)) return;
    stop();
    const text = textOf(event.target);
    if (text.trim() && text !== sentence) timer = window.setTimeout(begin, PAUSE, text);
    else if (shown) {
      leave();
      restore();
    }
  };
  const submit = (event) => {
    const text = isBox(event) ? textOf(event.target) : "";
    if (!text.trim() || text === sentence) return;
    if (text !== asked) begin(text);
    event.detail.push(answered.then(paint)); // It may have been asked for in a pause just before.
  };
  document.addEventListener("input", type, { capture: true, signal: listening.signal });
  document.addEventListener("attenscope-submit", submit, { capture: true, signal: listening.signal });
  return {
    dispose() {
      listening.abort();
      stop();
      leave();
    },
  };
}
