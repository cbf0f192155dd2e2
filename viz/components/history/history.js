import { historySteps } from "./steps.js";

export default function addressHistory({ data }) {
  historySteps().scrubbed = data.scrubbed;
}
