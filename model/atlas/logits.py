"""What heads add to the residual stream, for a batch: its size, and its part of the logit of the reference token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..attribution.recording import HeldNorm, sublayers
from ..capture.points import AttentionPoints
from ..network.attention import MultiHeadAttention
from ..network.autoregressive import AutoregressiveModel
from ..network.transformer import Transformer
from ..trace import Kind
from .forward import Run


@torch.inference_mode()
def norm_shares(found: Run, kind: Kind) -> Tensor | None:
    """Return each head's share of what the heads of its layer add to a row: (B, L, H, Q), 0 to 1.

    None where it is not known which layer joins the heads.

    The size of what a head adds is the norm of sum alpha f(x), Kobayashi et al. (2020), section 2, output projection
    included and its bias left out.
    """
    shares = []
    for site in found.of_kind(kind):
        slices = _slices(site.module)
        if slices is None:
            return None
        added = torch.einsum("bhqd,hdm->bhqm", found.tensors[f"{site.path}.context"], slices).norm(dim=-1)
        shares.append(added / added.sum(1, keepdim=True).clamp_min(torch.finfo(added.dtype).tiny))
    return torch.stack(shares, 1)


@torch.inference_mode()
def logit_contributions(model: AutoregressiveModel, found: Run) -> dict[Kind, Tensor]:
    """Return what the decoder's heads add to the logit of each target token: (B, L, H, T) for decoder and cross.

    Nothing of a model that is not of this project, whose norms are not known one by one.

    Direct logit attribution (Elhage et al. 2021), as :func:`model.attribution.logit_parts.logit_parts` does for one
    word: norms between a head and the logit have the scale that they have in this run. The direction of the logit is
    carried back through those norms instead of every head forward.
    """
    if not isinstance(model, Transformer):
        return {}
    stack, blocks = model.decoder, sublayers(model, "decoder")
    direction = model.generator.weight[found.batch.target_out].double()
    direction = _back(stack.final_norm, found.tensors[blocks[-1].residual_path], direction)
    rows: dict[tuple[Kind, int], Tensor] = {}
    before = ["target_embedding.stream", *(block.residual_path for block in blocks)]
    for block, stream in reversed(list(zip(blocks, before, strict=False))):
        if not block.residual.pre:
            normed = found.tensors[stream] + found.tensors[block.path]
            direction = _back(block.residual.norm, normed, direction)
        if block.kind is not None:
            slices = _slices(model.get_submodule(block.path))
            assert slices is not None
            context = found.tensors[f"{block.path}.context"].double()
            wanted = torch.einsum("btm,hdm->bhtd", direction, slices.double())
            rows[block.kind, block.layer] = (context * wanted).sum(-1)
    return {
        kind: torch.stack([rows[kind, layer] for layer in sorted(at for one, at in rows if one == kind)], 1)
        for kind in dict.fromkeys(kind for kind, _ in rows)
    }


def _back(norm: nn.Module, x: Tensor, direction: Tensor) -> Tensor:
    """Carry a direction (B, T, D) from the output of a norm to its input x, by the transpose, its scale held."""
    held = HeldNorm(norm, x.double())
    if held.identity:
        return direction
    scaled = held.gain * direction / held.scale
    return scaled - scaled.mean(-1, keepdim=True)


def _slices(attention: nn.Module) -> Tensor | None:
    """Every head's slice of W_O: (H, d, D); None where it is not known."""
    if isinstance(attention, MultiHeadAttention):
        weight: Tensor | None = attention.out_proj.weight
    else:
        assert isinstance(attention, AttentionPoints)
        weight = attention.output_projection
    return None if weight is None else weight.T.reshape(attention.heads, -1, weight.shape[0])
