const DRAG = 6; // Pixels that a pointer moves before a click becomes a box.

/** Let a box be drawn with the mouse; `chosen` hears of its left, right, low and high in the coordinates of the axes. */
export function brushing(view, at, scale, chosen) {
  let from = null;
  const corners = (to) => [0, 1].map((i) => [Math.min(from[i], to[i]), Math.max(from[i], to[i])]);
  view.plot.onpointerdown = (event) => {
    if (event.button === 0 && event.pointerType === "mouse") from = at(event);
  };
  view.plot.onpointermove = (event) => {
    if (!from) return;
    const to = at(event);
    if (!view.box.isConnected && Math.hypot(to[0] - from[0], to[1] - from[1]) < DRAG) return;
    if (!view.box.isConnected) {
      view.svg.append(view.box);
      view.plot.setPointerCapture(event.pointerId);
    }
    const [[left, right], [top, bottom]] = corners(to);
    for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top }))
      view.box.setAttribute(name, value);
  };
  view.plot.onpointerup = (event) => {
    if (from && view.box.isConnected) {
      const [[left, right], [top, bottom]] = corners(at(event));
      view.brushed = true;
      chosen([...[left, right].map(scale().valueX), ...[bottom, top].map(scale().valueY)]);
    }
    from = null;
    view.box.remove();
  };
  view.plot.onpointercancel = () => {
    from = null;
    view.box.remove();
  };
}
