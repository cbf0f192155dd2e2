"""ALTI+: how much of each position comes from each piece of the source and of the prefix.

Ferrando et al. (2022), "Towards Opening the Black Box of Neural Machine Translation: Source and Target
Interpretations of the Transformer", https://arxiv.org/abs/2205.11631. The output y of an attention block is a sum of
transformed vectors T(x_j), the residual connection one of them; x_j contributes max(0, |y| - |y - T(x_j)|) with the L1
norm, rescaled so that a row sums to 1 (equations 5 and 6). Blocks are chained by matrix products, the encoder's through
the cross-attention; feed-forward networks work on each position alone and mix nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .recording import HeldNorm, Recording, Sublayer, sublayers


def alti(recording: Recording) -> tuple[Tensor, Tensor]:
    """Return the shares of decoder inputs (T, T) and of source pieces (T, S) in each decoder position.

    A row of both together sums to 1.
    """
    memory = _encoder(recording)
    inputs = len(recording["target_embedding.stream"])
    own = torch.eye(inputs, dtype=memory.dtype, device=memory.device)
    source = memory.new_zeros(inputs, len(memory))
    before = recording["target_embedding.stream"]
    for sublayer in sublayers(recording.model, "decoder"):
        if sublayer.kind == "decoder":
            mixing = block_contributions(recording, sublayer, before)
            own, source = mixing @ own, mixing @ source
        elif sublayer.kind == "cross":
            read = block_contributions(recording, sublayer, before)
            residual = read[:, -1:]
            own, source = residual * own, residual * source + read[:, :-1] @ memory
        before = recording[sublayer.residual_path]
    return own, source


def block_contributions(recording: Recording, sublayer: Sublayer, before: Tensor) -> Tensor:
    """Return the contributions of one attention block: (T, T), or (T, S + 1) of a cross-attention, the residual last.

    before (T, D) is the residual stream that the block reads and adds to. Every row sums to 1.
    """
    vectors = recording.transformed_values(sublayer)
    residual = torch.eye(len(before), dtype=before.dtype, device=before.device)
    if sublayer.kind == "cross":
        vectors = torch.cat([vectors, before[:, None]], 1)
        keys = vectors.shape[1]
        residual = torch.eye(keys, dtype=before.dtype, device=before.device)[-1:].expand(len(before), -1)
    else:
        vectors = vectors + residual[..., None] * before[:, None]
    if not sublayer.residual.pre:
        bias = recording.attention(sublayer).out_proj.bias
        whole = vectors.sum(1) + (0 if bias is None else bias.detach().double())
        vectors = HeldNorm(sublayer.residual.norm, whole[:, None])(vectors)
    return contributions(vectors, recording[sublayer.residual_path], residual)


def contributions(vectors: Tensor, result: Tensor, residual: Tensor) -> Tensor:
    """Return the shares of vectors (Q, K, D) in their results (Q, D): (Q, K), rows summing to 1.

    A row in which no vector comes nearer to the result than zero does is that of `residual` (Q, K).
    """
    near = (result.abs().sum(-1)[:, None] - (result[:, None] - vectors).abs().sum(-1)).clamp_min(0)
    total = near.sum(-1, keepdim=True)
    return torch.where(total > 0, near / total.clamp_min(torch.finfo(near.dtype).tiny), residual)


def _encoder(recording: Recording) -> Tensor:
    """The shares of source pieces in each position of the memory, (S, S)."""
    before = recording["source_embedding.stream"]
    mixed = torch.eye(len(before), dtype=before.dtype, device=before.device)
    for sublayer in sublayers(recording.model, "encoder"):
        if sublayer.kind is not None:
            mixed = block_contributions(recording, sublayer, before) @ mixed
        before = recording[sublayer.residual_path]
    return mixed
