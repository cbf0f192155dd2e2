// A sentence of the reader's own, translated by the model in the page. The model is fetched when it is asked for, not before.
const SITE = new URL("..", document.currentScript.src);
const FROM_DISK =
  "This page was opened from a disk, where a browser lets no page fetch the model. Open the site from a web address " +
  "(in the folder of these pages: python -m http.server), or take the live file, which needs neither.";

/** The address of the live page that begins with a sentence, in the colours of this one. */
function liveAddress({ view }, sentence) {
  const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  const asked = new URLSearchParams({ sentence, view, theme });
  return new URL(`live/index.html#${asked}`, SITE);
}

/** The live page in a frame as high as what it shows. */
function frameOf(address) {
  const frame = document.createElement("iframe");
  frame.src = address;
  frame.title = "The model, translating your sentence";
  frame.addEventListener("load", () => {
    const page = frame.contentDocument;
    const fit = () => (frame.style.height = `${Math.min(Math.max(page.body.scrollHeight + 32, 480), 1600)}px`);
    new ResizeObserver(fit).observe(page.body);
  });
  return frame;
}

function begin(place) {
  const form = document.createElement("form");
  const label = form.appendChild(document.createElement("label"));
  label.append("Your sentence, in English");
  const box = label.appendChild(document.createElement("input"));
  box.value = place.dataset.sentence;
  box.autocomplete = "off";
  const submit = form.appendChild(document.createElement("button"));
  submit.textContent = "Translate";
  const note = form.appendChild(document.createElement("p"));
  note.setAttribute("role", "status");
  note.textContent = "The model is loaded when you ask it: about 17 MB, on a phone 10 MB.";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (location.protocol === "file:") note.textContent = FROM_DISK;
    else form.replaceWith(frameOf(liveAddress(place.dataset, box.value)));
  });
  place.replaceChildren(form);
}

document.querySelectorAll(".live-model").forEach(begin);
