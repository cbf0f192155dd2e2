// A sentence of the reader's own, translated by the model in the page. The model is fetched when it is asked for, not before.
const SITE = new URL("..", document.currentScript.src);
const FROM_DISK =
  "This page was opened from a disk, where a browser lets no page fetch the model. Open the site from a web address " +
  "(in the folder of these pages: python -m http.server), or take the live file, which needs neither.";

const colourScheme = () => (document.body.dataset.mdColorScheme === "slate" ? "dark" : "light");

/** The address of the live page that begins with a sentence, in the colours of this one. */
function liveAddress({ view }, sentence) {
  const asked = new URLSearchParams({ sentence, view, theme: colourScheme() });
  return new URL(`live/index.html#${asked}`, SITE);
}

/** The live page in a frame as high as what it shows. */
function frameOf(address) {
  const frame = document.createElement("iframe");
  frame.src = address;
  frame.title = "The model, translating your sentence";
  frame.addEventListener("load", () => {
    const page = frame.contentDocument;
    const fit = () => {
      const shown = page.querySelector("main")?.getBoundingClientRect().bottom ?? 0; // The body is as high as the frame.
      frame.style.height = `${Math.max(shown + page.defaultView.scrollY + 32, 480)}px`;
    };
    new ResizeObserver(fit).observe(page.body);
    new MutationObserver(fit).observe(page.body, { childList: true, attributeFilter: ["data-drawn"] });
    const follow = () => page.documentElement.style.colorScheme !== colourScheme() && page.querySelector(".theme")?.click();
    new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  });
  return frame;
}

function begin(place) {
  const form = document.createElement("form");
  const label = form.appendChild(document.createElement("label"));
  label.append("Your English sentence, to be translated into German");
  const box = label.appendChild(document.createElement("input"));
  box.value = place.dataset.sentence;
  box.autocomplete = "off";
  const submit = form.appendChild(document.createElement("button"));
  submit.textContent = "Translate";
  const note = form.appendChild(document.createElement("p"));
  note.setAttribute("role", "status");
  note.textContent = "The first time, the model is loaded into this page: about 17 MB, on a phone 9 MB.";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (location.protocol === "file:") note.textContent = FROM_DISK;
    else form.replaceWith(frameOf(liveAddress(place.dataset, box.value)));
  });
  place.replaceChildren(form);
}

document.querySelectorAll(".live-model").forEach(begin);
