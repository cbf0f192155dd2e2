import { element, shadowed } from "../../web/src/shared/element.js";

/** Which part of a scene (viz/talk/scenes.py) each component is. */
const ROLES = {
  ...{ overview: "heads", heatmap: "picture", links: "picture", text: "picture", tokens: "translation" },
  ...{ decode_player: "decoding", beam_tree: "tree", versions: "best" },
};

/** A component of the app in `host`: `draw(data, hear)` mounts it, or gives the one that is mounted other data. */
export function placed(host, name, { components, styles }) {
  const own = host.appendChild(element("div", `part ${name}`));
  if (ROLES[name]) own.dataset.role = ROLES[name];
  const parent = shadowed(own, styles[name]);
  return (data, hear) => components[name]({ data, parentElement: parent, setTriggerValue: hear });
}
