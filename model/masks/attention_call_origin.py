"""Where in somebody's code attention was called, and which masks arrived there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..language import SOURCE_LANGUAGE, say, to_say, use_language

MaskReading = tuple[str, Mapping[str, Any]]
"""How one mask is read: a code of :data:`MASK_READINGS`, and the values of its message."""
MASK_READINGS = {
    "attend": to_say("{name}, True = may attend"),
    "blocked": to_say("{name}, True = blocked"),
    "added": to_say("{name}, added to the scores"),
    "causal": to_say("is_causal=True, from the top left"),
    "function-added": to_say("{name} of {function}, added to the scores"),
    "function-attend": to_say("{name} of {function}, read as {one} = may attend"),
    "guess-attend": to_say("{name} of {function}, read as {one} = may attend, which contradicts fewer cells in force"),
    "guess-blocked": to_say("{name} of {function}, read as {one} = blocked, which contradicts fewer cells in force"),
    "evaluated": to_say("{name}, evaluated at every cell"),
    "both-evaluated": to_say("{name} and {other}, evaluated at every cell"),
    "misshaped": to_say("{name} of the shape {shape}, which cannot be laid out as queries x keys"),
    "arguments": "{arguments}",
}
"""How masks are read."""
CAPTURED_CALLS = "captured_calls"
"""The name under which a capture hands its calls to a diagnosis, one text of JSON a layer."""
CAPTURED_EXTRA_KEYS = "captured_extra_keys"
"""The name under which a capture says how many of the last keys are no tokens, such as a sink."""
PADDING_ARGUMENTS = ("key_padding_mask", "src_key_padding_mask", "memory_key_padding_mask", "tgt_key_padding_mask")
_PADDING_CODES = ("padding-visible", "padding-swapped", "sample-order", "mask-shifted", "hole-inside", "wrong-axis")
"""Codes of faults that lie in the padding mask where a call takes it as an argument of its own."""
_NON_MASK_CODES = (
    "dropout-on",
    "softmax-axis",
    "transposed",
    "positions-wrong",
    "batch-axis",
    "extra-mass",
    "pad-query",
)


@dataclass(frozen=True)
class AttentionCall:
    """One call of attention: the module that made it, the line outside of torch, and the masks given to it."""

    path: str
    """The module's path in the model; empty for the model itself."""
    module: str
    """Its class."""
    function: str
    """What was called, such as ``F.scaled_dot_product_attention``."""
    file: str
    line: int
    arguments: Mapping[str, str]
    """Every argument for masks that the call takes: what arrived, or ``None``."""
    passed: str | None = None
    """Which masks were passed and how they are read; empty where none arrived, None where that was not recorded."""
    passed_cells: bool = True
    """Whether what was passed can be laid out as queries x keys; else ``passed`` says what cannot."""
    readings: Sequence[MaskReading] = ()
    """The same as ``passed``, a reading for each mask."""
    inside: str = ""
    """``nn.Transformer`` where the call is the self-attention of its decoder, whose mask is an argument of that."""

    def copy_with_mask_readings(self, readings: Sequence[MaskReading], cells: bool = True) -> AttentionCall:
        """Return the call with the masks that it was passed."""
        with use_language(SOURCE_LANGUAGE):  # it is kept in files
            passed = _mask_readings_text(readings)
        return replace(self, passed=passed, passed_cells=cells, readings=tuple(readings))

    @property
    def passed_masks_description(self) -> str:
        """What ``passed`` says, in the reader's language; as it is saved where nothing else was recorded."""
        try:
            return _mask_readings_text(self.readings) or self.passed or ""
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            return self.passed or ""

    def as_json(self) -> str:
        """Return the call as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> AttentionCall:
        """Return a call from the text of :meth:`as_json`. Raises ValueError and TypeError for other text."""
        call = cls(**json.loads(text))
        call = replace(call, readings=tuple(call.readings))
        texts = [call.path, call.module, call.function, call.file, call.passed or "", call.inside]
        texts += [*call.arguments, *call.arguments.values()]
        right = isinstance(call.line, int) and isinstance(call.passed_cells, bool)
        if not right or not all(isinstance(one, str) for one in texts):
            raise TypeError("A call of attention consists of texts and a line number.")
        return call

    @classmethod
    def parse_calls_from_json(cls, texts: Sequence[str]) -> tuple[AttentionCall, ...]:
        """Return the calls of a saved trace, which nobody vouches for: none where any text is no call."""
        try:
            return tuple(map(cls.from_json, texts))
        except (ValueError, TypeError, AttributeError, RecursionError):
            return ()

    @property
    def place(self) -> str:
        """Path, class, file, line and function, in words."""
        return say(
            "{path} ({module}), {file}:{line}, calls {function}",
            path=self.path or say("the model"),
            module=self.module,
            file=self.file,
            line=str(self.line),
            function=self.function,
        )

    def received_mask_names(self) -> list[str]:
        """Return the arguments that arrived with a mask."""
        return [name for name, value in self.arguments.items() if value not in ("None", "False")]

    def words(self, code: str) -> str:
        """Return the place, and which argument carries a fault of this ``code``, in a sentence without its end."""
        if code in _NON_MASK_CODES or not self.arguments:
            return self.place
        apart = [name for name in self.arguments if name in PADDING_ARGUMENTS]
        takes = apart if apart and code in _PADDING_CODES else [name for name in self.arguments if name not in apart]
        carrying = [name for name in self.received_mask_names() if name in takes]
        if not carrying:
            none = _arguments_text({name: self.arguments[name] for name in takes})
            return say("{place}; none arrived: {arguments}", place=self.place, arguments=none)
        carried = _arguments_text({name: self.arguments[name] for name in carrying})
        return say("{place}; carried by {arguments}", place=self.place, arguments=carried)


def _mask_readings_text(readings: Sequence[MaskReading]) -> str:
    return "; ".join(say(MASK_READINGS[code], **values) for code, values in readings)


def _arguments_text(arguments: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in arguments.items())
