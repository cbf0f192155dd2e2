import { historySteps } from "./steps.js";

historySteps();
