/** What stands before a script for English readers (viz/web/bundle.py). */
globalThis.MESSAGES = { language: "en", said: {} };
