import { element } from "./element.js";
import { library } from "./inflate.js";

/** The room that a chart takes; it is drawn into it once the slide is fitted. */
export function chart(host, part, view) {
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", part.alt);
  host.style.height = `${part.figure.layout.height ?? 450}px`;
  view.charts.push(() => drawn(host, part.figure));
  return () => {};
}

/** Plotly finds the mouse under a transform but not under a zoom: inside a slide that is zoomed, its own box is not. */
async function drawn(host, figure) {
  const plotly = await library();
  if (!host.isConnected) return () => {}; // Another slide was asked for meanwhile.
  const box = host.appendChild(element("div", "chart"));
  const place = () => {
    const zoom = host.currentCSSZoom ?? 1;
    Object.assign(box.style, { zoom: 1 / zoom, transform: zoom === 1 ? "none" : `scale(${zoom})`, width: `${host.clientWidth}px` });
    return { width: host.clientWidth };
  };
  await plotly.newPlot(box, figure.data, { ...figure.layout, ...place() }, { displayModeBar: false });
  const sized = new ResizeObserver(() => box.layout.width !== host.clientWidth && plotly.relayout(box, place()));
  sized.observe(host);
  return () => (sized.disconnect(), plotly.purge(box));
}
