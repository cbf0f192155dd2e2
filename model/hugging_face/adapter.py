"""An adapter of a folder's model (LoRA and its relatives), merged into the weights by peft where that is installed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from ..language import join_items, say, to_say
from ..runnable_model import LocalError
from .folder import ADAPTER_FILE, convert_failure_to_local_error

ADAPTER_WEIGHTS = "adapter_model.safetensors"
MERGED_KINDS = ("ADALORA", "IA3", "LOHA", "LOKR", "LORA", "OFT")
"""Adapters that are a change of weights; others put tokens before the text or layers between those of the model."""


def merge_adapter(model: PreTrainedModel, adapter: Path) -> PreTrainedModel:
    """Return the model with the weights of an adapter's folder merged into its own. Raises LocalError."""
    settings = _read_settings(adapter)
    kind = str(settings.get("peft_type", "")).upper()
    if kind not in MERGED_KINDS:
        raise LocalError(
            say(
                "{adapter} is an adapter of the type {type}; {known} can be merged into a model.",
                adapter=adapter.name,
                type=kind[:40],
                known=join_items(MERGED_KINDS),
            )
        )
    if not (adapter / ADAPTER_WEIGHTS).is_file():
        raise LocalError(
            say("{folder} has no weights in safetensors ({file}).", folder=adapter.name, file=ADAPTER_WEIGHTS)
        )
    try:
        from peft import PeftModel
    except ImportError as error:
        raise LocalError(
            say("Running an adapter takes peft, which is not installed here: {command}", command="`pip install peft`")
        ) from error
    with convert_failure_to_local_error(adapter, to_say("{folder} does not fit the model that it is put on.")):
        merged = PeftModel.from_pretrained(model, str(adapter), local_files_only=True).merge_and_unload(safe_merge=True)
    assert isinstance(merged, PreTrainedModel)
    return merged


def _read_settings(adapter: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((adapter / ADAPTER_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise LocalError(
            say("{folder} has no {config}: it is no adapter.", folder=adapter.name, config=ADAPTER_FILE)
        ) from error
    except (ValueError, RecursionError) as error:
        raise LocalError(say("{folder}: {config} is not JSON.", folder=adapter.name, config=ADAPTER_FILE)) from error
    return found if isinstance(found, dict) else {}
