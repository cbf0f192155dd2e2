"""Measure what a model loses in 8 bits a weight: its greedy BLEU beside that in half precision."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ..atomic_write import write_file
from ..checkpoint.load import CHECKPOINTS_FOLDER, Checkpoint, build_model, to_safetensors, unique_weights
from ..network.transformer import Transformer
from ..torch_layers import reorder_linear_weights
from ..translate import Translator

INT8_FILE = "int8.json"


@dataclass(frozen=True)
class EightBits:
    """What was measured of one checkpoint."""

    model_hash: str
    source: str
    """The text: its folder and file."""
    sentences: int
    half: float
    """Greedy BLEU in half precision."""
    int8: float


def quantise_rows(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scales (R,) float32 and the whole numbers (R, C) int8 whose product is nearest to `values` (R, C)."""
    scales = (np.abs(values).max(1) / 127).astype(np.float32)
    return scales, np.rint(values / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)


def measure_eight_bits(translator: Translator, pairs: Sequence[tuple[str, str]], source: str) -> EightBits:
    """Translate the sources of `pairs` greedily with the model's weights, and with its matrices in 8 bits."""
    import sacrebleu  # what only evaluation needs is not asked of people who run the app

    checkpoint = translator.checkpoint
    small = Translator(dataclasses.replace(checkpoint, model=_round_to_8_bits(checkpoint)))
    sources, references = (list(side) for side in zip(*pairs, strict=True))
    half, int8 = (
        round(sacrebleu.corpus_bleu(one.translate_batch(sources), [references]).score, 2) for one in (translator, small)
    )
    return EightBits(checkpoint.hash, source, len(pairs), half, int8)


def _round_to_8_bits(checkpoint: Checkpoint) -> Transformer:
    """The model with every matrix rounded to 8 bits."""
    weights = unique_weights(checkpoint.model)
    for name, weight in weights.items():
        if weight.ndim == 2:
            scales, numbers = quantise_rows(weight.cpu().numpy())
            weights[name] = torch.from_numpy(scales[:, None] * numbers)
    model = build_model(checkpoint.model.config, to_safetensors(weights, torch.float32), checkpoint.name)
    reorder_linear_weights(model.to(next(checkpoint.model.parameters()).device))
    return model


def write_eight_bits(folder: Path, found: EightBits) -> None:
    """Write int8.json into a checkpoint's folder."""
    write_file(folder / INT8_FILE, json.dumps(dataclasses.asdict(found), indent=2, ensure_ascii=False) + "\n")


def read_all_eight_bits(folder: Path = CHECKPOINTS_FOLDER) -> Mapping[str, EightBits]:
    """Return what was measured of the checkpoints in a folder, by the hash of their weights."""
    found = [
        EightBits(**json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob(f"*/{INT8_FILE}"))
    ]
    return {one.model_hash: one for one in found}
