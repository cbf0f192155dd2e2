"""Train a model: a resumable loop, its state on disk, its processes, and its loss.

A training can be resumed after a kill at any moment, and is the same on one process or many. Everything random is a
function of the recipe's seed, the step and the rank, so a state is weights, optimiser and a step number. Under torchrun
every process takes a slice of each global batch, and gradients are weighted by tokens: the loss curve is that of one
process with the same global batch.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..atomic_write import atomic_write
from ..checkpoint.load import unique_weights
from ..checkpoint.measurements import HISTORY_FILE, HistoryRow, write_history
from ..checkpoint.recipe import Recipe
from ..language import say
from ..network.attention import make_padding_mask
from ..network.config import PAD_ID, TransformerConfig
from ..network.transformer import Transformer
from .data import Batch, Batches

STATE_FILE = "state.pt"


class HistoryRowSums(NamedTuple):
    """The sums since the last row of the history; part of the state, so that a kill leaves no trace in the row."""

    loss: float = 0.0
    """Summed over the target tokens."""
    tokens: int = 0
    seconds: float = 0.0

    def add_step(self, loss: float, tokens: int, seconds: float) -> HistoryRowSums:
        """Return the sums after one step more; `seconds` are those since the last row."""
        return HistoryRowSums(self.loss + loss, self.tokens + tokens, seconds)


class Trainer:
    """One training run in one folder; construct it again on the same folder to go on.

    Raises ValueError where the folder holds the state of another run: of another recipe, architecture or text.
    """

    def __init__(
        self, recipe: Recipe, model: Transformer, batches: Batches, folder: Path, rank: int = 0, world: int = 1
    ) -> None:
        self.recipe, self.model, self.batches, self.folder = recipe, model, batches, folder
        self.rank, self.world = rank, world
        self.device = next(model.parameters()).device
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=recipe.betas, eps=1e-9, fused=True)
        self.identity = RunIdentity.from_recipe(recipe, model.config, batches)
        self.step, self.seconds = 0, 0.0
        self.history: list[HistoryRow] = []
        self._since_row, self._clock = HistoryRowSums(), 0.0
        folder.mkdir(parents=True, exist_ok=True)
        self._resume()
        if world > 1:
            check_same_step(self.step, self.device, folder)
        self._delete_later_weights()

    def run(
        self, evaluate: Callable[[Transformer], float] | None = None, last: int | None = None
    ) -> Iterator[HistoryRow]:
        """Train to the step `last`, or to the recipe's, yielding a history row every 50 steps and at every evaluation.

        Files due at a step are written before its row is yielded, so a listener that stops there loses none.
        """
        last = self.recipe.steps if last is None else min(last, self.recipe.steps)
        self._clock = time.monotonic() - self._since_row.seconds
        for epoch, rows in self.batches.steps(self.step):
            if self.step >= last:
                break
            self._since_row = self._since_row.add_step(*self._train_step(rows), time.monotonic() - self._clock)
            evaluating = self.recipe.is_evaluation_step(self.step)
            reporting = evaluating or self.step % 50 == 0 or self.step == last
            if reporting:
                row = self._row(epoch, evaluate if evaluating else None)
            self._keep(evaluating, self.step == last)
            if reporting:
                yield row
                self._clock = time.monotonic()

    def average_weights(self) -> dict[str, Tensor]:
        """Return the mean of the weights kept at the last evaluations."""
        kept = [load_file(path) for path in self._list_weight_files()]
        return {name: torch.stack([one[name] for one in kept]).mean(0) for name in kept[0]}

    def _train_step(self, rows: Any) -> tuple[float, int]:
        """One optimiser step on one global batch -> (summed loss, target tokens) over all processes."""
        self.step += 1
        torch.manual_seed(self.recipe.seed * 1_000_003 + self.step * 1009 + self.rank)
        self.model.train()
        tokens = int(self.batches.lengths[rows, 1].sum())
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate(self.step)
        own = rows[self.rank :: self.world]
        loss = self._compute_summed_loss(self.batches.batch(own)) if len(own) else None
        if loss is not None:
            (loss / tokens).backward()
        total = self._sum_gradients_and_loss(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total, tokens

    def _compute_summed_loss(self, batch: Batch) -> Tensor:
        """Summed over the real target tokens."""
        source, target_in = batch.source.to(self.device), batch.target_in.to(self.device)
        target_out = batch.target_out.to(self.device)
        model, bfloat16 = self.model, self.recipe.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bfloat16):
            states = model.decode(target_in, model.encode(source), make_padding_mask(source, PAD_ID))
            real = (target_out != PAD_ID).flatten().nonzero()[:, 0]
            return smoothed_cross_entropy(
                states.flatten(0, 1).index_select(0, real),
                target_out.flatten().index_select(0, real),
                model.generator.weight,
                model.generator.bias,
                self.recipe.label_smoothing,
            )

    def _sum_gradients_and_loss(self, loss: Tensor | None) -> float:
        if self.world == 1:
            return 0.0 if loss is None else loss.item()
        try:
            return sum_gradients(self.model, loss)
        except RuntimeError as error:
            raise WorkerLostError(
                say(
                    "Another training process was lost at step {step}. Start the same command again: the run goes "
                    "on from the state in {folder}.",
                    step=self.step,
                    folder=self.folder,
                )
            ) from error

    def _row(self, epoch: int, evaluate: Callable[[Transformer], float] | None) -> HistoryRow:
        loss, tokens, elapsed = self._since_row
        self._since_row = HistoryRowSums()
        self.seconds += elapsed
        bleu = None
        if evaluate and self.rank == 0:
            bleu = round(evaluate(self.model.eval()), 2)
        rate = self.recipe.rate(self.step)
        row = HistoryRow(
            self.step, epoch, round(loss / tokens, 4), rate, round(tokens / elapsed), round(self.seconds), bleu
        )
        self.history.append(row)
        return row

    # What is on disk. Files appear whole or not at all: written beside their place, then moved there.

    def _keep(self, evaluating: bool, stopping: bool) -> None:
        if self.rank:
            return
        if evaluating:
            self._write_weights(self.folder / f"weights-{self.step:07d}.safetensors")
            for old in self._list_weight_files()[: -self.recipe.average]:
                old.unlink()
        if self.step in self.recipe.snapshot_steps():
            self._write_weights(self.folder / f"snapshot-{self.step:07d}.safetensors")
        if stopping or self.step % self.recipe.save_every == 0:
            self._save_run_state()

    def _list_weight_files(self) -> list[Path]:
        return sorted(self.folder.glob("weights-*.safetensors"))

    def _write_weights(self, path: Path) -> None:
        with atomic_write(path) as temporary:
            save_file(
                {name: tensor.cpu().contiguous() for name, tensor in unique_weights(self.model).items()}, temporary
            )

    def _save_run_state(self) -> None:
        state = {
            "begun": asdict(self.identity),
            "model": unique_weights(self.model),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "since_row": tuple(self._since_row),
            "history": [asdict(row) for row in self.history],
        }
        with atomic_write(self.folder / STATE_FILE) as temporary:
            torch.save(state, temporary)
        with atomic_write(self.folder / HISTORY_FILE) as temporary:
            write_history(self.history, temporary)

    def _resume(self) -> None:
        path = self.folder / STATE_FILE
        if not path.exists():
            return
        state = read_state(path, self.device)
        self.identity.check(state["begun"], state["step"], path)
        with torch.no_grad():
            for name, parameter in unique_weights(self.model).items():
                parameter.copy_(state["model"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]
        self._since_row = HistoryRowSums(*state.get("since_row", ()))
        self.history = [HistoryRow(**row) for row in state["history"]]

    def _delete_later_weights(self) -> None:
        """Remove weights of steps not done: a killed run makes them again, and those of another run are not its."""
        if self.rank:
            return
        for path in (*self._list_weight_files(), *self.folder.glob("snapshot-*.safetensors")):
            if int(path.stem.rpartition("-")[2]) > self.step:
                path.unlink()


# The state of a training on disk, and what identifies its run, so that no run goes on as another one.


@dataclass(frozen=True)
class RunIdentity:
    """All that decides the weights of a run."""

    recipe: Recipe
    config: TransformerConfig
    texts: tuple[str, ...]
    """Hashes of the text of each phase, see :meth:`Batches.texts`."""

    @classmethod
    def from_recipe(cls, recipe: Recipe, config: TransformerConfig, batches: Batches) -> Self:
        """Return the identity of a run of this recipe, architecture and text."""
        return cls(recipe, config, batches.texts())

    def check(self, state: dict[str, Any], step: int, path: Path) -> None:
        """Raise ValueError, naming what differs, unless a run of this identity could be in the `state` at its step.

        What only matters later may differ: until its learning rate begins to fall, a run can get more steps, and other
        text for them.
        """
        try:
            saved = RunIdentity(Recipe(**state["recipe"]), TransformerConfig(**state["config"]), state["texts"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                say(
                    "{path} was written by another version of this program. Choose another folder with --state.",
                    path=path,
                )
            ) from error
        found = saved.config.differences(self.config) | self.recipe.find_resume_mismatches(saved.recipe, step)
        differences = [
            say("{name} was {before!r} and is now {now!r}", name=name, before=before, now=now)
            for name, (before, now) in found.items()
        ]
        begun = 1 + sum(step > switch for switch in self.recipe.list_mixture_switches())
        if not differences and tuple(saved.texts[:begun]) != self.texts[:begun]:
            differences = [say("the text of --data or its vocabulary is another")]
        if differences:
            raise ValueError(
                say(
                    "The training in {folder} stands at step {step:,} and was begun otherwise: {differences}. "
                    "Choose another folder with --state, or go on with what it was begun with.",
                    folder=path.parent,
                    step=step,
                    differences="; ".join(differences),
                )
            )


def read_state(path: Path, device: torch.device) -> dict[str, Any]:
    """Return the state of a run.

    Raises ValueError for a file that is damaged, or of a version that did not write the identity of its run.
    """
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ValueError(
            say(
                "{path} is damaged: it is not a state of a training. Choose another folder with --state, or remove it.",
                path=path,
            )
        ) from error
    if not isinstance(state, dict) or "begun" not in state:
        raise ValueError(
            say(
                "{path} does not say what its training was begun with, as an earlier version of this program left "
                "it, so it cannot be gone on from. Choose another folder with --state, or remove it.",
                path=path,
            )
        )
    return state


# Training on many processes: one group, gradients summed over it, all at the same step.


class WorkerLostError(RuntimeError):
    """The loss of another process of a distributed run."""


@contextmanager
def join_process_group(device: torch.device) -> Iterator[tuple[int, int]]:
    """Join torchrun's group if it started this process, each on a GPU of its own: (rank, world size), else (0, 1)."""
    if "RANK" not in os.environ:
        yield 0, 1
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def sum_gradients(model: nn.Module, loss: Tensor | None) -> float:
    """Put the sum of all processes' gradients in place of this one's, and return the sum of their losses.

    One buffer for all of it; None for a process that had no sentence. Raises RuntimeError when another process is lost.
    """
    parameters = list(model.parameters())
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    summed = torch.zeros(1, device=parameters[0].device) if loss is None else loss.detach().view(1)
    buffer = torch.cat([gradient.flatten() for gradient in gradients] + [summed])
    dist.all_reduce(buffer)
    parts = buffer[:-1].split([p.numel() for p in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)
    return buffer[-1].item()


def check_same_step(step: int, device: torch.device, folder: Path) -> None:
    """Raise ValueError unless all processes stand at the same step: machines that do not share `folder` would not."""
    ends = torch.tensor([step, -step], device=device)
    dist.all_reduce(ends, dist.ReduceOp.MAX)
    last, first = ends[0].item(), -ends[1].item()
    if first != last:
        raise ValueError(
            say(
                "The processes would go on from different steps, {first} to {last}: the folder of the state "
                "({folder}) must be one that all machines share; choose it with --state.",
                first=first,
                last=last,
                folder=folder,
            )
        )


# Label-smoothed cross-entropy (section 5.4) of a linear output layer, without ever holding all logits at once.
#
# The logits of a batch (tokens x V) are by far the largest tensor of a training step. Going through them a slice at a
# time, and computing the gradients while a slice is still in the cache, took a quarter off the step on a CPU.


TOKENS_PER_SLICE = 512  # tokens a slice: 16 MB of float32 logits at V = 8,000


def smoothed_cross_entropy(
    states: Tensor, targets: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float
) -> Tensor:
    """Sum over tokens of the cross-entropy against (1 - smoothing) * one-hot + smoothing / V.

    states (N, D), targets (N,), weight (V, D), bias (V,) or None -> a scalar; equal to F.cross_entropy with
    ``reduction="sum"``. Matrix products run in bfloat16 under autocast.
    """
    return _LinearCrossEntropy.apply(states, targets, weight, bias, smoothing)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, targets: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float
    ) -> Tensor:
        device = states.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
        matrix = weight.detach().to(dtype)
        d_states, d_weight = torch.empty_like(states), torch.zeros_like(weight)
        d_bias = None if bias is None else torch.zeros_like(bias)
        total = states.new_zeros((), dtype=weight.dtype)
        for start in range(0, len(states), TOKENS_PER_SLICE):
            part = slice(start, start + TOKENS_PER_SLICE)
            rows = states[part].detach().to(dtype)
            logits = (rows @ matrix.T).to(weight.dtype)
            if bias is not None:
                logits += bias.detach()
            loss, gradient = _compute_smoothed_loss_and_gradient(logits, targets[part], smoothing)
            total += loss
            if d_bias is not None:
                d_bias += gradient.sum(0)
            gradient = gradient.to(dtype)
            d_states[part] = (gradient @ matrix).to(states.dtype)
            d_weight += gradient.T @ rows
        ctx.save_for_backward(d_states, d_weight, d_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        upstream = gradients[0]
        d_states, d_weight, d_bias = ctx.saved_tensors
        d_bias = None if d_bias is None else d_bias * upstream
        return d_states * upstream, None, d_weight * upstream, d_bias, None


def _compute_smoothed_loss_and_gradient(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """logits (n, V) -> the summed loss, and its gradient (n, V), which takes the place of the logits."""
    picked, mean = logits.gather(1, targets[:, None])[:, 0], logits.mean(1)
    highest = logits.amax(1, keepdim=True)
    logits.sub_(highest).exp_()
    total = logits.sum(1, keepdim=True)
    log_total = total.log()[:, 0] + highest[:, 0]
    loss = (log_total - (1 - smoothing) * picked - smoothing * mean).sum()
    logits.div_(total).sub_(smoothing / logits.shape[1])
    logits[torch.arange(len(targets), device=targets.device), targets] -= 1 - smoothing
    return loss, logits
