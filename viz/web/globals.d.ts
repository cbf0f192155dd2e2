/** What stands before a script (bundle.py): the reader's language, and in it what the script says. */
declare const MESSAGES: { language: string; said: Record<string, string> };

interface Window {
  /** The library of charts, once a saved file has read it. */
  Plotly: any;
  /** What a live file offers to scripts (docs/saving.md). */
  attenscope: { ready: boolean; translate?: (text: string, options?: { beam?: number }) => Promise<object> };
}

interface DocumentEventMap {
  "attenscope-head": CustomEvent;
}

interface Navigator {
  userAgentData?: { mobile: boolean };
}
