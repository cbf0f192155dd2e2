import { historySteps } from "./steps.js";

export default function addressHistory({ data }) {
  Object.assign(historySteps(), { begun: true, scrubbed: data.scrubbed });
}
