import { unpack } from "../shared/packed.js";
import { addressed } from "../shared/element.js";

/** What stands compressed and in base64 in a script element. */
async function inflated(element) {
  const binary = atob(element.textContent);
  const bytes = new Uint8Array(binary.length); // Ten times as fast as Uint8Array.from.
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** The slides in these colours, light or dark, as they stand in the file. */
const contentOf = (colours) => [...document.querySelectorAll("script")].find((one) => one.dataset.of === colours);

/** Take on the colours that the address asks for, where the file has them; whether they are others than before. */
export function takeColours() {
  const page = document.documentElement;
  const wanted = addressed().get("theme");
  if (wanted === page.dataset.scheme || !contentOf(wanted)) return false;
  page.dataset.scheme = wanted;
  return true;
}

/** The slides (`header`) and the bytes of their pictures (`body`), in the page's colours. */
export async function content() {
  return unpack(new Uint8Array(await inflated(contentOf(document.documentElement.dataset.scheme))));
}

let plotly = null;

/** Have plotly ready before a slide asks for it, if any does. */
export function prepare() {
  if (document.getElementById("plotly").textContent) library();
}

/** Plotly, once the first chart needs it. Its hash stands in the page's security policy. */
export function library() {
  plotly ??= inflated(document.getElementById("plotly")).then((text) => {
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(text);
    document.head.append(script);
    return window.Plotly;
  });
  return plotly;
}
