/** What stands before a script for English readers (viz/web/component_scripts.py). */
globalThis.MESSAGES = { language: "en", said: {} };
