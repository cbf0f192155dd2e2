"""A model on one device held against the same model on the CPU: translations, log-probabilities, attention."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..decoding.greedy_and_sampling import ObserverCheck, teacher_forced_log_probs
from ..language import say
from ..network.config import EOS_ID
from ..translate import Translator

LEAST_SAME_TEXTS = 0.99
"""The least share of sentences whose greedy translations are equal."""
LOG_PROB_TOLERANCE = 1e-3
"""Log-probabilities, in nats, and logits may differ so far."""
WEIGHT_TOLERANCE = 1e-4
"""Attention weights may differ so far."""


@dataclass(frozen=True)
class DeviceCheck:
    """How far a model on a device is from the same model on the CPU, over some sentences."""

    model: str
    device: str
    sentences: int
    same: int
    """Sentences with the same greedy translation on both."""
    lead: float
    """Where two translations part, the lead of the CPU's token over the device's in log-probability: the largest."""
    log_probs: float
    """Largest difference of any log-probability of the whole vocabulary, while both read the CPU's translations."""
    weights: float
    """Largest difference of any attention weight of the first sentence."""
    observer: ObserverCheck
    """Whether looking changed the translation of the first sentence on the device."""
    tokens_per_second: float
    """Greedy, all sentences in one batch on the device, after one run to warm up."""
    memory: int
    """Bytes: the most that was allocated on a GPU while it translated; on another device those of the parameters."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What is outside of the limits, in words; nothing where all is well."""
        found = (
            (
                self.same < LEAST_SAME_TEXTS * self.sentences and self.lead > LOG_PROB_TOLERANCE,
                say("translations differ"),
            ),
            (not self.lead <= LOG_PROB_TOLERANCE, say("another token was clearly more probable")),
            (not self.log_probs <= LOG_PROB_TOLERANCE, say("log-probabilities differ")),
            (not self.weights <= WEIGHT_TOLERANCE, say("attention differs")),
            (self.observer.by_capture != 0, say("looking changes the outputs")),
        )
        return tuple(text for is_so, text in found if is_so)


@torch.inference_mode()
def compare_device_with_cpu(cpu: Translator, there: Translator, texts: Sequence[str]) -> DeviceCheck:
    """Translate the texts with both translators, which hold the same model, and compare.

    Raises InputError as the translators do.
    """
    pairs = [_translate_greedily(translator, texts) for translator in (cpu, there)]
    leads, differences = zip(
        *(_compare_translations(cpu, there, *one) for one in zip(texts, *pairs, strict=True)), strict=True
    )
    shown = there.translate(texts[0])
    reading = cpu.force(texts[0], shown.target_ids).trace
    maps = [(one.weights, reading.maps[kind].weights) for kind, one in shown.trace.maps.items()]
    tokens_per_second, memory = _measure_speed_and_memory(there, texts)
    return DeviceCheck(
        cpu.name,
        str(there.device),
        len(texts),
        sum(one == other for one, other in zip(*pairs, strict=True)),
        max(leads),
        float(np.max(differences)),  # NaN if there is one, as Python's max would not be
        float(np.max([np.abs(one - other).max() for one, other in maps])),
        there.check_observer(shown),
        tokens_per_second,
        memory,
    )


def _translate_greedily(translator: Translator, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """One at a time, as a page does: the ids written, </s> included."""
    return [translator.translate(text, capture=False).target_ids for text in texts]


def _compare_translations(
    cpu: Translator, there: Translator, text: str, expected: Sequence[int], found: Sequence[int]
) -> tuple[float, float]:
    """The CPU's lead where the two translations part, 0 where they do not; the largest difference of a log-prob."""
    source = torch.tensor([cpu.encode(text).ids], device=cpu.device)
    ours = teacher_forced_log_probs(cpu.model, source, expected)
    theirs = teacher_forced_log_probs(there.model, source.to(there.device), expected).to(ours.device)
    difference = float((ours - theirs).masked_fill(ours == theirs, 0).abs().max())  # both may be -inf
    padded = zip((*expected, EOS_ID), (*found, EOS_ID), strict=False)
    parted = next((at for at, (one, other) in enumerate(padded) if one != other), None)
    lead = 0.0 if parted is None else float(ours[parted, expected[parted]] - ours[parted, found[parted]])
    return lead, difference


def _measure_speed_and_memory(translator: Translator, texts: Sequence[str]) -> tuple[float, int]:
    """Tokens a second of a batch, and bytes of memory."""
    is_gpu = translator.device.type == "cuda"
    translator.translate_batch(texts)
    if is_gpu:
        torch.cuda.synchronize(translator.device)
        torch.cuda.reset_peak_memory_stats(translator.device)
    started = time.perf_counter()
    written = translator.translate_batch(texts)
    took = time.perf_counter() - started  # the texts are on the CPU: nothing is left to wait for
    tokens = sum(len(translator.tokenizer.encode(text).ids) for text in written)
    memory = (
        torch.cuda.max_memory_allocated(translator.device) if is_gpu else _count_bytes(translator.model.parameters())
    )
    return tokens / took, memory


def _count_bytes(tensors: Iterator[Any]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)
