"""Training: resumable after a kill at any moment, and the same on one process or many.

Everything random is a function of the recipe's seed, the step and the rank, so a state is weights, optimiser and a
step number. Under torchrun every process takes a slice of each global batch, and gradients are weighted by tokens:
the loss curve is that of one process with the same global batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..atomic_write import atomic_write
from ..checkpoint.history import HISTORY, HistoryRow, write_history
from ..checkpoint.load import unique_weights
from ..checkpoint.recipe import Recipe
from ..language.say import say
from ..network.config import PAD_ID
from ..network.masks import padding_mask
from ..network.transformer import Transformer
from .data import Batch, Batches
from .loss import smoothed_cross_entropy
from .processes import WorkerLostError, check_same_step, sum_gradients
from .resume import RunIdentity, read_state

STATE = "state.pt"


class SinceRow(NamedTuple):
    """The sums since the last row of the history; part of the state, so that a kill leaves no trace in the row."""

    loss: float = 0.0
    """Summed over the target tokens."""
    tokens: int = 0
    seconds: float = 0.0

    def plus(self, loss: float, tokens: int, seconds: float) -> SinceRow:
        """Return the sums after one step more; `seconds` are those since the last row."""
        return SinceRow(self.loss + loss, self.tokens + tokens, seconds)


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
        self.identity = RunIdentity.of(recipe, model.config, batches)
        self.step, self.seconds = 0, 0.0
        self.history: list[HistoryRow] = []
        self._since_row, self._clock = SinceRow(), 0.0
        folder.mkdir(parents=True, exist_ok=True)
        self._resume()
        if world > 1:
            check_same_step(self.step, self.device, folder)
        self._forget_later()

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
            self._since_row = self._since_row.plus(*self._train_step(rows), time.monotonic() - self._clock)
            evaluating = self.recipe.evaluates(self.step)
            reporting = evaluating or self.step % 50 == 0 or self.step == last
            if reporting:
                row = self._row(epoch, evaluate if evaluating else None)
            self._keep(evaluating, self.step == last)
            if reporting:
                yield row
                self._clock = time.monotonic()

    def average_weights(self) -> dict[str, Tensor]:
        """Return the mean of the weights kept at the last evaluations."""
        kept = [load_file(path) for path in self._kept()]
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
        loss = self._loss(self.batches.batch(own)) if len(own) else None
        if loss is not None:
            (loss / tokens).backward()
        total = self._sum_over_processes(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total, tokens

    def _loss(self, batch: Batch) -> Tensor:
        """Summed over the real target tokens."""
        source, target_in = batch.source.to(self.device), batch.target_in.to(self.device)
        target_out = batch.target_out.to(self.device)
        model, bfloat16 = self.model, self.recipe.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bfloat16):
            states = model.decode(target_in, model.encode(source), padding_mask(source, PAD_ID))
            real = (target_out != PAD_ID).flatten().nonzero()[:, 0]
            return smoothed_cross_entropy(
                states.flatten(0, 1).index_select(0, real),
                target_out.flatten().index_select(0, real),
                model.generator.weight,
                model.generator.bias,
                self.recipe.label_smoothing,
            )

    def _sum_over_processes(self, loss: Tensor | None) -> float:
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
        self._since_row = SinceRow()
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
            for old in self._kept()[: -self.recipe.average]:
                old.unlink()
        if self.step in self.recipe.snapshot_steps():
            self._write_weights(self.folder / f"snapshot-{self.step:07d}.safetensors")
        if stopping or self.step % self.recipe.save_every == 0:
            self._save()

    def _kept(self) -> list[Path]:
        return sorted(self.folder.glob("weights-*.safetensors"))

    def _write_weights(self, path: Path) -> None:
        with atomic_write(path) as temporary:
            save_file(
                {name: tensor.cpu().contiguous() for name, tensor in unique_weights(self.model).items()}, temporary
            )

    def _save(self) -> None:
        state = {
            "begun": asdict(self.identity),
            "model": unique_weights(self.model),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "since_row": tuple(self._since_row),
            "history": [asdict(row) for row in self.history],
        }
        with atomic_write(self.folder / STATE) as temporary:
            torch.save(state, temporary)
        with atomic_write(self.folder / HISTORY) as temporary:
            write_history(self.history, temporary)

    def _resume(self) -> None:
        path = self.folder / STATE
        if not path.exists():
            return
        state = read_state(path, self.device)
        self.identity.check(state["begun"], state["step"], path)
        with torch.no_grad():
            for name, parameter in unique_weights(self.model).items():
                parameter.copy_(state["model"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]
        self._since_row = SinceRow(*state.get("since_row", ()))
        self.history = [HistoryRow(**row) for row in state["history"]]

    def _forget_later(self) -> None:
        """Remove weights of steps not done: a killed run makes them again, and those of another run are not its."""
        if self.rank:
            return
        for path in (*self._kept(), *self.folder.glob("snapshot-*.safetensors")):
            if int(path.stem.rpartition("-")[2]) > self.step:
                path.unlink()
