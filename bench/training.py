"""Training against the same model made of nn.Transformer and the usual loop, step by step on the same batches."""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attenscope.checkpoint.recipe import Recipe
from attenscope.network.config import EOS_ID, PAD_ID, SPECIAL_PIECES, TransformerConfig
from attenscope.network.layers import make_sinusoidal_table
from attenscope.network.transformer import Transformer
from attenscope.training.data import Batch, Batches
from attenscope.training.trainer import Trainer
from bench.timing import Row

CONFIG = TransformerConfig()
RECIPE = Recipe("bench", "en", "de")
PAIRS, STEPS = 4000, 12
GOAL = 1.3


def measure() -> list[Row]:
    torch.manual_seed(0)
    batches = random_batches()
    theirs = UsualLoop()
    our_rates, their_rates = [], []
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(RECIPE, Transformer(CONFIG), batches, Path(folder))
        for step, (_, rows) in zip(range(1, STEPS + 1), batches.steps(0), strict=False):
            (row,) = trainer.run(last=step)
            our_rates.append(row.tokens_per_second)
            start = time.perf_counter()
            batch = batches.batch(rows)
            theirs.train_step(batch, RECIPE.rate(step))
            their_rates.append(batch.tokens / (time.perf_counter() - start))
    ours, usual = median(our_rates[1:]), median(their_rates[1:])  # the first step of each warms up
    ratio = ours / usual
    return [
        Row(
            "training: target tokens/s, ours / nn.Transformer",
            f"{ours:,.0f}",
            f"{usual:,.0f}",
            ratio,
            f"at least {GOAL:g}",
            ratio >= GOAL,
        )
    ]


def random_batches() -> Batches:
    """Sentences of random ids whose lengths spread like those of short everyday text."""
    random = np.random.default_rng(0)

    def sentence(length: int) -> list[int]:
        return [*random.integers(len(SPECIAL_PIECES), CONFIG.vocab_size, length).tolist(), EOS_ID]

    lengths = random.lognormal(2.3, 0.4, PAIRS).astype(int).clip(2, 60)
    targets = (lengths * random.uniform(0.8, 1.25, PAIRS)).astype(int).clip(2, 60)
    return Batches(
        [sentence(n) for n in lengths], [sentence(n) for n in targets], RECIPE.tokens_per_batch, RECIPE.longest, seed=0
    )


class TorchTransformer(nn.Module):
    """The architecture of CONFIG from torch's own parts: pre-norm, final norms, one tied embedding, sinusoids."""

    def __init__(self) -> None:
        super().__init__()
        width = CONFIG.d_model
        self.embedding = nn.Embedding(CONFIG.vocab_size, width)
        self.register_buffer("positions", make_sinusoidal_table(CONFIG.max_length, width).float())
        self.dropout = nn.Dropout(CONFIG.dropout)
        self.transformer = nn.Transformer(
            width,
            CONFIG.heads,
            CONFIG.encoder_layers,
            CONFIG.decoder_layers,
            CONFIG.feed_forward,
            CONFIG.dropout,
            batch_first=True,
            norm_first=True,
        )
        nn.init.normal_(self.embedding.weight, std=width**-0.5)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) ids -> logits (B, T, V)"""
        blocked = source == PAD_ID
        states = self.transformer(
            self._embedded(source),
            self._embedded(target),
            tgt_mask=torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1),
            src_key_padding_mask=blocked,
            tgt_key_padding_mask=target == PAD_ID,
            memory_key_padding_mask=blocked,
            tgt_is_causal=True,
        )
        return F.linear(states, self.embedding.weight)

    def _embedded(self, ids: Tensor) -> Tensor:
        positions = self.get_buffer("positions")[: ids.shape[1]]
        return self.dropout(self.embedding(ids) * math.sqrt(CONFIG.d_model) + positions)


class UsualLoop:
    """nn.Transformer trained as tutorials do, with the same optimiser, autocast, smoothing and clipping as ours."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "enable_nested_tensor")  # of no use to a pre-norm encoder
            self.model = TorchTransformer().train()
        self.optimizer = torch.optim.Adam(self.model.parameters(), betas=RECIPE.betas, eps=1e-9, fused=True)

    def train_step(self, batch: Batch, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(batch.source, batch.target_in)
            loss = F.cross_entropy(
                logits.flatten(0, 1),
                batch.target_out.flatten(),
                ignore_index=PAD_ID,
                label_smoothing=RECIPE.label_smoothing,
            )
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), RECIPE.clip_norm)
        self.optimizer.step()
