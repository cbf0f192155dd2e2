"""The engine of viz/engine in a page without a network, and what it says as numpy arrays."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page

from attenscope.checkpoint.load import Checkpoint
from attenscope.viz.engine.pack_checkpoint import KERNEL_FILE, EngineModel, WeightForm, pack_checkpoint
from tests.browser.modules import import_names

START = """([packed, code]) => {
  const bytes = (text) => {
    const binary = atob(text);
    const made = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i += 1) made[i] = binary.charCodeAt(i);
    return made;
  };
  window.running = window.engine(window.unpack(bytes(packed)), bytes(code));
}"""
TRANSLATE = """([text, options]) => {
  const plain = (one) => {
    if (one instanceof Float32Array || one instanceof Uint8Array) {
      const bytes = new Uint8Array(one.buffer, one.byteOffset, one.byteLength);
      let text = "";
      for (const byte of bytes) text += String.fromCharCode(byte);
      return { type: one.constructor.name, bytes: btoa(text) };
    }
    if (Array.isArray(one)) return one.map(plain);
    if (!one || typeof one !== "object") return one;
    return Object.fromEntries(Object.entries(one).map(([name, own]) => [name, plain(own)]));
  };
  return plain(window.running.translate(text, options));
}"""

EXPLAIN = """(asked) => {
  const work = window.running.explain(asked);
  let part = work.next();
  while (!part.done) part = work.next();
  return part.value;
}"""


class EnginePage:
    """One model in the engine, in a page of its own."""

    def __init__(
        self, page: Page, folder: Path, checkpoint: Checkpoint | EngineModel, form: WeightForm = "half"
    ) -> None:
        self.page = page
        file = folder / "engine.html"
        file.write_text('<!doctype html><meta charset="utf-8">')
        page.goto(file.as_uri())
        import_names(page, "engine/engine.js", "engine")
        import_names(page, "web/src/shared/packed.js", "unpack")
        page.evaluate(START, [_text(pack_checkpoint(checkpoint, form)), _text(KERNEL_FILE.read_bytes())])

    def translate(self, text: str, **options: Any) -> dict[str, Any]:
        """What the engine returns, its typed arrays as numpy's."""
        return _arrays(self.page.evaluate(TRANSLATE, [text, options]))

    def explain(self, found: Mapping[str, Any], changes: str = "") -> dict[str, Any]:
        """What the tokens of a translation rest on, as the engine's generator returns it in the end."""
        asked = {"sourceIds": found["sourceIds"], "ids": found["ids"], "changes": changes}
        return self.page.evaluate(EXPLAIN, asked)

    def encode(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        return self.page.evaluate("(texts) => texts.map(window.running.tokens.encode)", list(texts))

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return self.page.evaluate("(every) => every.map(window.running.tokens.decode)", [list(one) for one in ids])


def weights(found: Mapping[str, Any], kind: str) -> np.ndarray:
    """The weights of one kind, (L, H, Q, K)."""
    one = found["maps"][kind]
    return one["data"].reshape(one["shape"])


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


TYPES = {"Float32Array": "<f4", "Uint8Array": "u1"}


def _arrays(found: Any) -> Any:
    if isinstance(found, list):
        return [_arrays(one) for one in found]
    if not isinstance(found, dict):
        return found
    if set(found) == {"type", "bytes"}:
        return np.frombuffer(base64.b64decode(found["bytes"]), TYPES[found["type"]])
    return {name: _arrays(one) for name, one in found.items()}
