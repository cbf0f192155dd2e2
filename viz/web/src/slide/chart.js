import { leaveOutCovered } from "../stage/cut.js";
import { pictureHeight } from "../shared/stage_sizes.js";
import { element } from "../shared/element.js";
import { library } from "./inflate.js";

/** The room that a chart takes; it is drawn into it once the slide is fitted. */
export function chart(host, part, view) {
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", part.alt);
  const { height = 450 } = part.figure.layout;
  host.style.height = pictureHeight(height);
  view.charts.push(() => drawn(host, part.figure, view.file.header.talk));
  return () => {};
}

const isResized = ({ width, height }, { clientWidth, clientHeight }) => width !== clientWidth || height !== clientHeight;

/** Plotly finds the mouse under a transform but not under a zoom: inside a slide that is zoomed, its own box is not. */
async function drawn(host, figure, projected) {
  const plotly = await library();
  if (!host.isConnected) return () => {}; // Another slide was asked for meanwhile.
  const box = host.appendChild(element("div", "chart"));
  const place = () => {
    const zoom = host.currentCSSZoom ?? 1;
    Object.assign(box.style, { zoom: 1 / zoom, transform: zoom === 1 ? "none" : `scale(${zoom})`, width: `${host.clientWidth}px` });
    return { width: host.clientWidth, height: host.clientHeight };
  };
  await plotly.newPlot(box, figure.data, { ...figure.layout, ...place() }, { displayModeBar: false });
  if (projected) {
    leaveOutCovered(host);
    box.on("plotly_afterplot", () => leaveOutCovered(host));
  }
  const sized = new ResizeObserver(() => isResized(box.layout, host) && plotly.relayout(box, place()));
  sized.observe(host);
  return () => (sized.disconnect(), plotly.purge(box));
}
