import { openFrame } from "../studio/frame.js";

const SPARES = 2; // Frames that are kept for scenes to come.

/**
 * Frames with the app's own pages, each the scene of a number, from 0. One that is not needed any more shows another
 * scene. `optionsOf(index)` resolves to those of a frame with a scene (studio/frame.js).
 */
export function liveFrames(box, scenes, listen, optionsOf) {
  const [shown, spare] = [new Map(), []];

  const isUsable = (frame) => !frame.refused && (frame.arrived || ![...shown.values(), ...spare].some((one) => one.arrived));
  /** A page that is still being built goes, unless it is the only one. */
  function leave(index) {
    const frame = shown.get(index);
    shown.delete(index);
    if (isUsable(frame) && spare.length < SPARES) spare.push(frame);
    else frame.remove();
  }
  /** The scene in a frame that is spare; undefined where none is. */
  async function reuse(index) {
    const { fitted } = await optionsOf(index);
    const at = spare.findIndex((frame) => frame.canGoTo(scenes[index]));
    if (shown.has(index) || at < 0) return shown.get(index);
    const [frame] = spare.splice(at, 1);
    shown.set(index, frame);
    frame.goTo(scenes[index], fitted);
    return frame;
  }
  /** The scene in a frame that is spare, or a new one. */
  async function open(index) {
    const options = await optionsOf(index);
    return (await reuse(index)) ?? shown.set(index, openFrame(box, scenes[index], listen, options)).get(index);
  }
  /** The scene in a frame that is there, where need be that of the least needed of the other scenes; undefined without. */
  function goTo(index, others) {
    const least = others.findLast((one) => shown.get(one)?.canGoTo(scenes[index]));
    if (!shown.has(index) && !spare.length && least !== undefined) leave(least);
    return reuse(index);
  }
  const remove = () => [...shown.values(), ...spare].forEach((frame) => frame.remove());
  return { shown, leave, open, goTo, remove };
}
