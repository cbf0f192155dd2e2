"""The same work on the GPU as on the CPU, and against Marian on the same GPU; nothing where there is no GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from attenscope.atlas.measure import measure_heads
from attenscope.atlas.teacher_forced_batches import Sentence, make_batches, run_batch
from attenscope.decoding.beam import beam_search
from attenscope.decoding.greedy_and_sampling import decode_batch_greedily
from attenscope.experiments.ablation import head_effects
from attenscope.network.transformer import Transformer
from attenscope.training.trainer import Trainer
from attenscope.translate import Translator
from bench.greedy import SOURCE_TOKENS, STEPS, endless_marian, our_model
from bench.timing import Row, side_by_side
from bench.training import CONFIG, RECIPE, random_batches

CHECKPOINT = "everyday-en-de"
SENTENCE = "Where did you buy this red bicycle last summer, my dear old friend?"
BATCH, WIDTH, TRAINING_STEPS, REPETITIONS = 32, 4, 12, 9


def measure(device: torch.device | None = None) -> list[Row]:
    """Rows against the CPU, then against Marian. `device`: to be measured instead of the GPU."""
    if device is None:
        if not torch.cuda.is_available():
            print("gpu: there is none here, so nothing is measured.")
            return []
        device = torch.device("cuda")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    cpu = torch.device("cpu")
    rows = [
        _row(f"ms of {what} on {name} / CPU", *_in_turn(work(device), work(cpu), device))
        for what, work in _workloads().items()
    ]
    return [*rows, _training(name, device, cpu), *_against_marian(name, device)]


def _workloads() -> dict[str, Callable[[torch.device], Callable[[], object]]]:
    """What is timed -> a function from a device to the work on it."""

    def translating(device: torch.device) -> Callable[[], object]:
        translator = Translator.load(CHECKPOINT, device)
        return lambda: translator.translate(SENTENCE)

    def switching_off(device: torch.device) -> Callable[[], object]:
        translator = Translator.load(CHECKPOINT, device)
        done = translator.translate(SENTENCE, capture=False)
        return lambda: head_effects(translator.model, done.source_ids, done.target_ids)

    def greedily(device: torch.device) -> Callable[[], object]:
        model, source = our_model().to(device), _source(device)
        return lambda: decode_batch_greedily(model, source, STEPS)

    def searching(device: torch.device) -> Callable[[], object]:
        model, source = our_model().to(device), _source(device)
        return lambda: list(beam_search(model, source, WIDTH, max_tokens=STEPS))

    def measuring(device: torch.device) -> Callable[[], object]:
        translator = Translator.load(CHECKPOINT, device)
        done = translator.translate(SENTENCE, capture=False)
        ids = (done.source_ids, list(done.target_ids))
        one = Sentence.from_source_and_target(0, (SENTENCE, done.text), ids, translator.tokenizer, ("en", "de"))
        (batch,) = make_batches([one] * BATCH, device)
        return lambda: measure_heads(translator.model, run_batch(translator.model, batch), True)

    return {
        f"an atlas's measures and costs, {BATCH} sentences": measuring,
        "one sentence with capture": translating,
        "96 heads switched off one by one": switching_off,
        f"greedy, {BATCH} sentences": greedily,
        f"beam {WIDTH}, {BATCH} sentences": searching,
    }


def _against_marian(name: str, device: torch.device) -> list[Row]:
    """The same models and sources as in `bench.greedy` and `bench.decode`."""
    ours, theirs, source = our_model().to(device), endless_marian().to(device), _source(device)
    settings: dict[str, Any] = {"attention_mask": torch.ones_like(source), "max_new_tokens": STEPS, "do_sample": False}

    def their(beams: int) -> Tensor:
        with torch.inference_mode():
            return theirs.generate(input_ids=source, num_beams=beams, **settings)

    cases: dict[str, tuple[Callable[[], object], int]] = {
        "greedy": (lambda: decode_batch_greedily(ours, source, STEPS), 1),
        f"beam {WIDTH}": (lambda: list(beam_search(ours, source, WIDTH, max_tokens=STEPS)), WIDTH),
    }
    return [
        _row(
            f"ms of {what}, {BATCH} sentences, ours / Marian on {name}",
            *_in_turn(work, lambda beams=beams: their(beams), device),  # type: ignore[misc]
        )
        for what, (work, beams) in cases.items()
    ]


def _training(name: str, device: torch.device, cpu: torch.device) -> Row:
    there, here = (median(_training_rates(one)[1:]) for one in (device, cpu))  # the first step warms up
    what = f"gpu: target tokens/s of training on {name} / CPU"
    return Row(what, f"{there:,.0f}", f"{here:,.0f}", there / here, "none", True)


def _training_rates(device: torch.device) -> list[float]:
    torch.manual_seed(0)
    batches = random_batches()
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(RECIPE, Transformer(CONFIG).to(device), batches, Path(folder))
        for step in range(1, TRAINING_STEPS + 1):
            (row,) = trainer.run(last=step)  # it reads the loss, so that all is done
            rates.append(float(row.tokens_per_second))
    return rates


def _in_turn(there: Callable[[], object], here: Callable[[], object], device: torch.device) -> tuple[float, float]:
    def finished() -> None:
        there()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return side_by_side(finished, here, REPETITIONS, warm_up=2)


def _row(what: str, ours: float, theirs: float) -> Row:
    return Row(f"gpu: {what}", f"{ours * 1e3:.1f}", f"{theirs * 1e3:.1f}", ours / theirs, "none", True)


def _source(device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(4, CONFIG.vocab_size, (BATCH, SOURCE_TOKENS), generator=generator).to(device)
