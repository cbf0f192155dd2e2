import { say } from "../shared/say.js";
import { piece } from "./elements.js";

/** "3.1", "3.mean" or "aligning" (as in the address, counted from 1) -> layer and head from 0, head null for the mean. */
function resolve(choice, aligning) {
  if (choice === "aligning") return { layer: aligning[0], head: aligning[1] };
  const [layer, head] = choice.split(".");
  return { layer: layer - 1, head: head === "mean" ? null : head - 1 };
}

/** The bytes of a map: those of a layer's heads, then those of their mean. */
export const sizeOf = ([layers, heads, queries, keys]) => layers * (heads + 1) * queries * keys;

/** The weights (queries x keys, bytes) of one head, or the mean over a layer's heads. */
export function chosenWeights(bytes, [, heads, queries, keys], choice, aligning) {
  const { layer, head } = resolve(choice, aligning);
  const size = queries * keys;
  const at = layer * (heads + 1) + (head ?? heads);
  return bytes.subarray(at * size, (at + 1) * size);
}

export function headName(choice, aligning) {
  const { layer, head } = resolve(choice, aligning);
  if (head === null) return say("layer {layer}, mean of heads", { layer: layer + 1 });
  return say("layer {layer}, head {head}", { layer: layer + 1, head: head + 1 });
}

/** A select of every head and every layer's mean; `aligning` adds the best aligning head on top. */
export function headSelect(label, [layers, heads], chosen, aligning, onChange) {
  const select = piece("select", "");
  select.setAttribute("aria-label", label);
  const option = (value, text) => {
    const made = piece("option", "", text);
    made.value = value;
    return made;
  };
  if (aligning) select.append(option("aligning", say("best aligning: {head}", { head: headName("aligning", aligning) })));
  for (let layer = 1; layer <= layers; layer += 1) {
    const group = document.createElement("optgroup");
    group.label = say("Layer {layer}", { layer });
    for (const head of ["mean", ...Array(heads).keys()]) {
      const value = `${layer}.${typeof head === "number" ? head + 1 : head}`;
      group.append(option(value, headName(value)));
    }
    select.append(group);
  }
  select.value = chosen;
  select.onchange = () => onChange(select.value);
  return select;
}
