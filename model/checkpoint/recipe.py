"""The recipe of a training: a JSON file beside the checkpoint, from which it can be trained again."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ..atomic_write import write_file
from ..language import join_items, say

RECIPE_FILE = "recipe.json"
SCHEDULES = ("linear", "inverse_sqrt")
WEIGHT_FREE_FIELDS = frozenset({"name", "facts", "model", "dev_split", "evaluate_sentences", "save_every"})
"""Fields that change no weight; and the model, whose built configuration is compared instead."""


@dataclass(frozen=True)
class Recipe:
    """Everything `python -m model train` needs but the text. The defaults train a 9 M parameter model."""

    name: str
    source_language: str
    target_language: str
    facts: dict[str, str] = field(default_factory=dict)
    """What a model card must say: data, licence, attribution; and sentences the page offers, with " | " between."""
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of TransformerConfig; with "preset", that preset with the other fields overridden."""

    begin_from: str = ""
    """The recipe, a file beside this one, of the checkpoint whose weights training begins with; "": random weights."""
    keep_tokenizer: bool = False
    """Keep that checkpoint's tokenizer too, whatever text is added."""
    vocab_size: int = 8000
    character_coverage: float = 1.0
    byte_fallback: bool = False
    """Spell a character that has no piece in the bytes of its UTF-8 form, 256 pieces of the vocabulary."""
    split_digits: bool = False
    """Give every digit a piece of its own."""
    dev_split: str = "dev"
    """Name of the files that training is judged by."""
    unlike_dev: bool = False
    """Leave out of training what is almost a dev sentence of --data: pairs whose source is one of theirs, or would be
    with one word added, removed or changed; case and punctuation do not count."""
    frames: str = ""
    """A table of frames and words, a file beside this one, whose sentences are a data folder "frames" (see
    :mod:`model.training.synthetic`)."""
    written: list[str] = field(default_factory=list)
    """Pairs written for this training, files beside this one with a tab between both sides, as one data folder
    "written"."""
    sloppy_share: float = 0.2
    """Share of the pairs added again with a source as people type it: no capitals, no final punctuation."""
    sloppy_apostrophes: bool = False
    """Half of these copies lose their apostrophes too ("dont"), and a quarter have the curved one that phones write."""
    joined_share: float = 0.0
    """As many lines as this share of the pairs are added that hold two sentences: two random pairs in one."""
    shouted_share: float = 0.0
    """Share of the pairs added again with a source in capitals."""
    renumbered: int = 0
    """How often each pair with the same number on both sides is added with another number of as many digits."""
    renamed_share: float = 0.0
    """Share of the pairs that are added, if the same name stands on both sides, with an invented one in its place."""
    resegmented: int = 0
    """How often each pair, copies too, is added in other pieces on both sides: BPE-dropout, Provilkov et al. 2020."""
    merge_dropout: float = 0.1
    """The chance with which these leave out a merge of the tokenizer."""
    mixture: dict[str, float] = field(default_factory=dict)
    """How often the pairs of a data folder, by its name, are used in one pass; 1 for a folder without a name here.

    0.33: a third of them, drawn anew for each pass. A copy is used as often as its pair; of a joined two, the rarer.
    """
    decay_mixture: dict[str, float] | None = None
    """The mixture while the learning rate falls, so that training ends on the kind of text the model is for (as in the
    schedule of MiniCPM, Hu et al. 2024, arXiv 2404.06395); None: the same throughout."""
    rewritten: str = ""
    """A table of lines that a model has rewritten, a file beside this one, as a data folder "rewritten" while the
    learning rate falls (see :func:`model.training.data.read_rewritten_pairs`)."""
    longest: int = 100
    """Pairs with more tokens than this on a side are left out of training."""

    steps: int = 10000
    schedule: str = "linear"
    """"linear": a linear warm-up to `peak_rate`, constant, a linear fall to zero at the end. "inverse_sqrt": the
    same warm-up, then falling with step ** -0.5. So does Vaswani et al. (2017), section 5.3, with 4,000 warm-up steps
    and a peak of d_model ** -0.5 * warmup_steps ** -0.5."""
    decay_steps: int = 2000
    """Length of the fall of "linear"; 0 with "inverse_sqrt", which has none."""
    tuning_steps: int = 0
    """The last steps of "linear", after that fall: the rate falls once more, from `tuning_rate` to zero."""
    tuning_rate: float = 0.0
    tuning_mixture: dict[str, float] | None = None
    """The mixture of these steps, which they need."""
    tuning_rewritten: str = ""
    """A table as in `rewritten`, in its place during these steps: what the model itself writes after the fall, so that
    greedy decoding comes closer to beam search (sequence-level distillation, Kim and Rush 2016, arXiv 1606.07947)."""
    warmup_steps: int = 500
    peak_rate: float = 1.5e-3
    betas: tuple[float, float] = (0.9, 0.98)
    label_smoothing: float = 0.1
    clip_norm: float = 1.0
    tokens_per_batch: int = 4096
    """Padded tokens of the longer side of one global batch."""
    precision: str = "bfloat16"
    """"bfloat16" (autocast) or "float32"."""
    seed: int = 1

    save_every: int = 500
    """Steps between two states from which a killed run goes on."""
    evaluate_every: int = 1000
    evaluate_sentences: int = 500
    average: int = 5
    """Weights of the last this many evaluations are averaged into the released ones."""
    snapshots: int | list[int] = 0
    """How many moments of the training are kept, evenly spaced in log steps, random start and end among them; or the
    steps between these two, so that `steps` may still change."""

    def __post_init__(self) -> None:
        for name in ("steps", "save_every", "evaluate_every", "tokens_per_batch", "average", "vocab_size"):
            if getattr(self, name) < 1:
                raise ValueError(say("{name} is {value}; it must be at least 1.", name=name, value=getattr(self, name)))
        if type(self.seed) is not int or self.seed < 0:
            raise ValueError(say("seed is {seed!r}; it must be a whole number of at least 0.", seed=self.seed))
        if self.precision not in ("bfloat16", "float32"):
            raise ValueError(
                say('precision is {precision!r}; it must be "bfloat16" or "float32".', precision=self.precision)
            )
        self._check_text_file_fields()
        if self.keep_tokenizer and not self.begin_from:
            raise ValueError(say("keep_tokenizer needs a checkpoint to begin with: name its recipe in begin_from."))
        if self.schedule not in SCHEDULES:
            raise ValueError(
                say(
                    "schedule is {schedule!r}; it must be one of {known}.",
                    schedule=self.schedule,
                    known=join_items(map(repr, SCHEDULES)),
                )
            )
        if self.schedule == "inverse_sqrt" and self.decay_steps:
            raise ValueError(
                say(
                    "decay_steps is {decay_steps}; the schedule 'inverse_sqrt' takes 0 only.",
                    decay_steps=self.decay_steps,
                )
            )
        if not 0 <= self.decay_steps <= self.steps:
            raise ValueError(
                say(
                    "decay_steps is {decay_steps}; it must lie between 0 and steps ({steps}).",
                    decay_steps=self.decay_steps,
                    steps=self.steps,
                )
            )
        self._check_tuning_fields()
        for name in ("mixture", "decay_mixture", "tuning_mixture"):
            _check_mixture(name, getattr(self, name))

    def _check_text_file_fields(self) -> None:
        _check_file_list("written", self.written)
        if self.rewritten and self.decay_mixture is None:
            raise ValueError(say("rewritten is read with a decay_mixture only: give one."))

    def _check_tuning_fields(self) -> None:
        longest = self.steps - self.decay_steps if self.schedule == "linear" else 0
        if not 0 <= self.tuning_steps <= longest:
            raise ValueError(
                say(
                    "tuning_steps is {tuning_steps}; it must lie between 0 and the steps that decay_steps leaves "
                    "({longest}), and the schedule 'inverse_sqrt' takes 0 only.",
                    tuning_steps=self.tuning_steps,
                    longest=longest,
                )
            )
        if self.tuning_steps and (self.tuning_mixture is None or self.tuning_rate <= 0):
            raise ValueError(say("tuning_steps need a tuning_mixture, and a tuning_rate above 0: give both."))
        if not self.tuning_steps and (self.tuning_mixture is not None or self.tuning_rewritten):
            raise ValueError(say("tuning_mixture and tuning_rewritten are read during tuning_steps only: give some."))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a recipe. Raises ValueError for a file that is none."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(say("The recipe {path} cannot be read: {error}.", path=path, error=error)) from error
        if not isinstance(values, dict):
            raise ValueError(say("The recipe {path} must be a JSON object of field names and values.", path=path))
        known = {one.name for one in dataclasses.fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(
                say("The recipe {path} has unknown fields: {unknown}.", path=path, unknown=join_items(unknown))
            )
        try:
            return cls(**{**values, "betas": tuple(values.get("betas", cls.betas))})
        except TypeError as error:
            raise ValueError(say("The recipe {path} is incomplete: {error}.", path=path, error=error)) from error

    def save(self, path: Path) -> None:
        """Write what :meth:`load` reads, every field spelled out: defaults may change."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        write_file(path, text + "\n")

    def find_resume_mismatches(self, saved: Recipe, step: int) -> dict[str, tuple[Any, Any]]:
        """Return the fields, (theirs, mine), by which a run of `saved` at `step` is no run of this recipe.

        So fields that matter later may change: `steps`, as long as no learning rate and no snapshot up to here does.
        """
        mine, theirs = self._collect_step_dependent_settings(step), saved._collect_step_dependent_settings(step)
        names = {one.name for one in dataclasses.fields(self)}.difference(WEIGHT_FREE_FIELDS, *mine)
        names.update(*(fields for fields in mine if mine[fields] != theirs[fields]))
        pairs = {name: (getattr(saved, name), getattr(self, name)) for name in sorted(names)}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def _collect_step_dependent_settings(self, step: int) -> dict[tuple[str, ...], list[Any]]:
        """What a run has left behind at a step, by the fields that decide it."""
        done = range(1, step + 1)
        return {
            ("schedule", "steps", "decay_steps", "warmup_steps", "peak_rate", "tuning_steps", "tuning_rate"): [
                self.rate(one) for one in done
            ],
            ("evaluate_every", "average"): [one for one in done if self.is_evaluation_step(one)][-self.average :],
            ("snapshots", "steps"): [one for one in self.snapshot_steps() if one <= step],
            ("decay_mixture", "rewritten", "steps", "decay_steps"): _list_switch_facts(
                step, self.last_step_before_decay, self.decay_mixture, self.rewritten
            ),
            ("tuning_mixture", "tuning_rewritten", "steps", "tuning_steps"): _list_switch_facts(
                step, self.last_step_before_tuning, self.tuning_mixture, self.tuning_rewritten
            ),
        }

    @property
    def last_step_before_tuning(self) -> int:
        """The last step of the fall of the learning rate; the last of all without a tuning."""
        return self.steps - self.tuning_steps

    @property
    def last_step_before_decay(self) -> int:
        """The last step before the learning rate falls."""
        return self.last_step_before_tuning - self.decay_steps

    def list_mixture_switches(self) -> tuple[int, ...]:
        """Return the steps after which the training draws from another mixture, in order."""
        decay = () if self.decay_mixture is None else (self.last_step_before_decay,)
        return decay if self.tuning_mixture is None else (*decay, self.last_step_before_tuning)

    def is_evaluation_step(self, step: int) -> bool:
        """Whether the model is scored after this step, and its weights kept to be averaged."""
        return step % self.evaluate_every == 0 or step in (self.last_step_before_tuning, self.steps)

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 1."""
        warm = min(1.0, step / max(1, self.warmup_steps))
        if self.schedule == "inverse_sqrt":
            return self.peak_rate * min(warm, (max(1, self.warmup_steps) / step) ** 0.5)
        if step > self.last_step_before_tuning:
            return self.tuning_rate * (self.steps - step) / max(1, self.tuning_steps)
        fall = min(1.0, (self.last_step_before_tuning - step) / max(1, self.decay_steps))
        return self.peak_rate * min(warm, fall)

    def snapshot_steps(self) -> tuple[int, ...]:
        """The steps after which a snapshot is kept: evenly spaced in log steps between the two ends of the training.

        The ends need no copy: the seed makes the random start again, and the released weights stand for the end.
        """
        if not isinstance(self.snapshots, int):
            return tuple(one for one in sorted(set(self.snapshots)) if 0 < one < self.steps)
        gaps = self.snapshots - 2
        return tuple(sorted({round(self.steps ** (1 - gap / gaps)) for gap in range(1, gaps + 1)} - {self.steps}))


def _list_switch_facts(step: int, switch: int, mixture: dict[str, float] | None, rewritten: str) -> list[Any]:
    """What a run at `step` has drawn from since the step `switch`; nothing where it has not gone past it."""
    return [mixture, rewritten, switch] if mixture is not None and step > switch else []


def _check_file_list(name: str, files: Any) -> None:
    """Raise ValueError for what is no list of texts: one text would be read letter by letter."""
    if not isinstance(files, list) or not all(isinstance(one, str) for one in files):
        raise ValueError(
            say("{name} is {files!r}; it must be a list of file names, in brackets.", name=name, files=files)
        )


def _check_mixture(name: str, mixture: Any) -> None:
    """Raise ValueError unless the mixture gives every folder a number of at least 0."""
    if mixture is None and name != "mixture":
        return
    if not isinstance(mixture, dict):
        raise ValueError(
            say("{name} is {mixture!r}; it must be an object of folder names and numbers.", name=name, mixture=mixture)
        )
    for folder, often in mixture.items():
        if type(often) not in (int, float) or not 0 <= often <= sys.float_info.max:  # of 400 digits too
            raise ValueError(
                say(
                    "{name} has {often!r} for {folder}; it must be a number of at least 0.",
                    name=name,
                    often=often,
                    folder=folder,
                )
            )
