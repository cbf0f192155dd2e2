"""Logits, attention scores and the residual stream as exact sums over the parts of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ..language import say, to_say
from ..network.abstract_model import make_decoder_inputs
from ..network.attention import MultiHeadAttention, make_padding_mask
from ..network.config import PAD_ID
from ..network.hooks import record_outputs
from ..network.layers import DecoderLayer, EncoderLayer, Residual
from ..network.transformer import Stack, Transformer
from ..runnable_model import Translation
from ..trace import Kind
from ..translate import Translator
from .target import AttributionError, Target

# Direct logit attribution: a logit, or the difference of two, as a sum over the parts of the residual stream.
#
# Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits": the logit is the dot product of the final
# stream with a row of the output matrix, so every part has its share of it, through the final norm with its scale
# held.


@dataclass(frozen=True)
class LogitPart:
    """What one part of the residual stream adds to the logit."""

    part: ResidualPart
    score: float
    held_norms: int
    """Norms between this part and the logit whose scale is held; 0 says that the part enters without any."""

    def as_json(self) -> dict[str, Any]:
        """Return name, kind, layer and head (from 0, or None) and score."""
        return {"name": self.part.name, **asdict(self.part), "score": self.score}


@dataclass(frozen=True)
class LogitParts:
    """A logit, or the difference of two, split over all parts of the residual stream."""

    word: str
    against: str | None
    parts: tuple[LogitPart, ...]
    """In the order in which they are added."""
    sum: float
    """The sum of all scores."""
    logit: float
    """As the model computed it, or the difference."""

    @property
    def parts_by_size(self) -> tuple[LogitPart, ...]:
        """The parts by size, largest first."""
        return tuple(sorted(self.parts, key=lambda one: -abs(one.score)))

    @property
    def exactness(self) -> str:
        """What is exact in these numbers and what is linearised."""
        most = max(one.held_norms for one in self.parts)
        if most == 0:
            return say("Exact: no norm stands between the parts and the logit.")
        if most == 1:
            return say(
                "The sum is exact. The scale of the final norm is held at its value in this run, so what a part does "
                "to that scale is not counted."
            )
        return say(
            "The sum is exact. This model has a norm after every sublayer; the first parts pass {most} of them, each "
            "with its scale held at its value in this run, so an early part's share is a linearisation and only that "
            "of the last sublayer depends on one norm alone.",
            most=most,
        )

    def as_json(self) -> dict[str, Any]:
        """Return {"word", "against", "parts", "sum", "logit", "exactness"}."""
        facts = {"word": self.word, "against": self.against, "method": "heads"}
        parts = [one.as_json() for one in self.parts]
        return {**facts, "parts": parts, "sum": self.sum, "logit": self.logit, "exactness": self.exactness}


def split_logit(model: Transformer, target: Target, recording: PassRecording) -> LogitParts:
    """Split logit X, of the first piece of X, or logit X - logit Y."""
    row = slice(target.position, target.position + 1)
    parts = split_residual_stream(recording, "decoder", row).apply_norm(find_final_norm(recording, "decoder"))
    weight, bias = model.generator.weight.detach(), model.generator.bias
    x, y = target.token_ids[0], target.against_id
    direction = weight[x].double() - (0 if y is None else weight[y].double())
    scores = parts.vectors[:, 0] @ direction
    if bias is not None:
        scores[0] += (bias[x] - (0 if y is None else bias[y])).detach().double()
    with torch.no_grad():
        logits = model.generator(recording.tensors["decoder.output"][0, target.position])
    logit = float(logits[x]) - (0.0 if y is None else float(logits[y]))
    found = zip(parts.parts, scores.tolist(), parts.norms, strict=True)
    return LogitParts(
        target.tokens[0].strip() if len(target.tokens) > 1 else target.word,
        target.against,
        tuple(LogitPart(*one) for one in found),
        float(scores.sum()),
        logit,
    )


# The residual stream as a sum: embedding, position, every head, every feed-forward network, biases.
#
# In a pre-norm model a sublayer adds to the stream and the sum is exact as it stands. In a post-norm model each
# sublayer ends in a norm through which the parts so far pass with its scale held at its value in this run: the sum is
# still exact, but how a part enters each scale is not counted to that part.


PartKind = Literal["embedding", "position", "encoder", "decoder", "cross", "feed_forward", "bias"]
_SUBLAYER_LABELS: dict[PartKind, str] = {
    "encoder": to_say("layer {layer} self-attention"),
    "decoder": to_say("layer {layer} self-attention"),
    "cross": to_say("layer {layer} cross-attention"),
    "feed_forward": to_say("layer {layer} feed-forward"),
}
_HEAD_LABELS: dict[PartKind, str] = {
    "encoder": to_say("layer {layer} self-attention head {head}"),
    "decoder": to_say("layer {layer} self-attention head {head}"),
    "cross": to_say("layer {layer} cross-attention head {head}"),
}
_OTHER_LABELS: dict[PartKind, str] = {
    "embedding": to_say("embedding"),
    "position": to_say("position"),
    "bias": to_say("biases"),
}


@dataclass(frozen=True)
class ResidualPart:
    """A term of the residual stream. Layers and heads count from 0; None where a part has none."""

    kind: PartKind
    """A head has the kind of its attention."""
    layer: int | None = None
    head: int | None = None

    @property
    def name(self) -> str:
        """Its name in tables and in JSON, in English; layers and heads count from 1."""
        message, numbers = self._label_template_and_values
        return message.format(**numbers)

    @property
    def label(self) -> str:
        """Its name in the reader's language."""
        message, numbers = self._label_template_and_values
        return say(message, **numbers)

    @property
    def sublayer(self) -> ResidualPart:
        """The sublayer that a head belongs to; the part itself where it is none."""
        return replace(self, head=None)

    @property
    def _label_template_and_values(self) -> tuple[str, dict[str, int]]:
        if self.layer is None:
            return _OTHER_LABELS[self.kind], {}
        if self.head is None:
            return _SUBLAYER_LABELS[self.kind], {"layer": self.layer + 1}
        return _HEAD_LABELS[self.kind], {"layer": self.layer + 1, "head": self.head + 1}


BIASES_PART = ResidualPart("bias")
"""All biases added outside the feed-forward networks: of the output projections and of norms. Always the first part."""


@dataclass(frozen=True, eq=False)
class ResidualParts:
    """Parts of a residual stream at some positions; their sum is the stream."""

    parts: tuple[ResidualPart, ...]
    vectors: Tensor
    """(P, T, D) float64"""
    norms: tuple[int, ...] = ()
    """(P,) how many norms each part has passed with the scale held."""

    @property
    def stream(self) -> Tensor:
        """(T, D)"""
        return self.vectors.sum(0)

    def add(self, parts: list[ResidualPart], vectors: Tensor, bias: Tensor | None = None) -> ResidualParts:
        """Add parts (N, T, D), and a bias (D,) to the biases."""
        own = self.vectors if bias is None else torch.cat([self.vectors[:1] + bias, self.vectors[1:]])
        return ResidualParts((*self.parts, *parts), torch.cat([own, vectors]), (*self.norms, *[0] * len(parts)))

    def apply_norm(self, norm: nn.Module) -> ResidualParts:
        """Pass every part through a norm whose scale is that of the whole stream; its bias joins the biases."""
        held = FixedScaleNorm(norm, self.stream)
        vectors = held(self.vectors)
        vectors = torch.cat([vectors[:1] + held.bias, vectors[1:]])
        passed = 0 if held.identity else 1
        return ResidualParts(self.parts, vectors, tuple(count + passed for count in self.norms))


def split_residual_stream(
    recording: PassRecording, stack: str, rows: slice, before: Sublayer | None = None
) -> ResidualParts:
    """Split the residual stream of ``encoder`` or ``decoder`` at the positions `rows`.

    `before` names the sublayer whose input it is; None for the end of the stack, before its final norm.
    """
    side = "source" if stack == "encoder" else "target"
    tokens = recording[f"{side}_embedding.tokens"][rows]
    position = recording[f"{side}_embedding.encoding"][rows].expand_as(tokens)
    start = (BIASES_PART, ResidualPart("embedding"), ResidualPart("position"))
    found = ResidualParts(start, torch.stack([torch.zeros_like(tokens), tokens, position]), (0, 0, 0))
    for sublayer in list_sublayers(recording.model, stack):
        if before is not None and sublayer.path == before.path:
            break
        found = _add_sublayer_parts(recording, sublayer, found, rows)
    return found


def find_final_norm(recording: PassRecording, stack: str) -> nn.Module:
    """Return the norm at the end of a stack, nn.Identity where the model has none."""
    module = recording.model.get_submodule(stack)
    assert isinstance(module, Stack)
    return module.final_norm


def apply_sublayer_norm(residual: Residual, parts: ResidualParts) -> ResidualParts:
    """Return the parts as the sublayer itself reads them: in a pre-norm model through its norm."""
    return parts.apply_norm(residual.norm) if residual.pre else parts


def _add_sublayer_parts(
    recording: PassRecording, sublayer: Sublayer, parts: ResidualParts, rows: slice
) -> ResidualParts:
    if sublayer.kind is None:
        added = parts.add([ResidualPart("feed_forward", sublayer.layer)], recording[sublayer.path][None, rows])
    else:
        attention = recording.attention(sublayer)
        heads = recording[f"{sublayer.path}.context"][:, rows] @ slice_output_projection(attention)
        names = [ResidualPart(sublayer.kind, sublayer.layer, head) for head in range(len(heads))]
        bias = attention.out_proj.bias
        added = parts.add(names, heads, None if bias is None else bias.detach().double())
    return added if sublayer.residual.pre else added.apply_norm(sublayer.residual.norm)


# One recorded forward pass with all that the exact decompositions need: streams, heads, weights, norms.


_ATTENTION_TENSORS = ("q", "k", "v", "scores", "weights", "context")
_EMBEDDING_TENSORS = ("tokens", "encoding", "stream")


@dataclass(frozen=True)
class Sublayer:
    """One sublayer of a stack: its modules, and the paths at which its tensors were recorded."""

    layer: int
    kind: Kind | None
    """None for a feed-forward network."""
    path: str
    residual: Residual
    residual_path: str


@dataclass(frozen=True, eq=False)
class PassRecording:
    """The tensors of one sentence's pass, by module path; what interventions changed is recorded as changed."""

    model: Transformer
    tensors: dict[str, Tensor]

    def __getitem__(self, path: str) -> Tensor:
        """Return a tensor without its batch axis, float64: streams (T, D), heads (H, T, d), weights (H, Q, K)."""
        return self.tensors[path][0].double()

    def attention(self, sublayer: Sublayer) -> MultiHeadAttention:
        """Return the attention module of a sublayer."""
        module = self.model.get_submodule(sublayer.path)
        assert isinstance(module, MultiHeadAttention)
        return module

    def projected_values(self, sublayer: Sublayer) -> Tensor:
        """Return what each head passes on of each key, (x W_V + b_V) W_O: (H, K, D)."""
        return torch.einsum(
            "hkd,hdm->hkm", self[f"{sublayer.path}.v"], slice_output_projection(self.attention(sublayer))
        )


def record_pass(model: Transformer, source_ids: Sequence[int], input_ids: Sequence[int]) -> PassRecording:
    """Run a sentence (S,) and decoder inputs (T,), <s> first, once, without the generator."""
    paths = [f"{side}_embedding.{name}" for side in ("source", "target") for name in _EMBEDDING_TENSORS]
    for stack in ("encoder", "decoder"):
        for sublayer in list_sublayers(model, stack):
            paths += [f"{sublayer.path}.{name}" for name in _ATTENTION_TENSORS] if sublayer.kind else [sublayer.path]
            paths.append(sublayer.residual_path)
        paths.append(f"{stack}.output")
    device = next(model.parameters()).device
    source, inputs = (torch.tensor([list(ids)], device=device) for ids in (source_ids, input_ids))
    with torch.no_grad(), record_outputs(model, *paths) as tensors:
        model.decode(inputs, model.encode(source), make_padding_mask(source, PAD_ID))
    return PassRecording(model, tensors)


def list_sublayers(model: Transformer, stack: str) -> list[Sublayer]:
    """Return the sublayers of ``encoder`` or ``decoder`` in the order in which they run."""
    layers = model.get_submodule(stack)
    assert isinstance(layers, Stack)
    found = []
    for index, layer in enumerate(layers.layers):
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        kinds: dict[str, Kind | None] = {"self_attention": "encoder" if stack == "encoder" else "decoder"}
        if isinstance(layer, DecoderLayer):
            kinds["cross_attention"] = "cross"
        for name, kind in (kinds | {"feed_forward": None}).items():
            path, after = f"{stack}.layers.{index}", f"after_{name}"
            residual = layer.get_submodule(after)
            assert isinstance(residual, Residual)
            found.append(Sublayer(index, kind, f"{path}.{name}", residual, f"{path}.{after}.stream"))
    return found


def slice_output_projection(attention: MultiHeadAttention) -> Tensor:
    """Return every head's slice of W_O (H, d, D), float64: context of a head @ slice is what it adds."""
    weight = attention.out_proj.weight.detach().double()
    return weight.T.reshape(attention.heads, -1, len(weight))


class FixedScaleNorm:
    """A layer norm with its scale held at one input, which makes it linear: gain * (x - mean(x)) / scale (+ bias)."""

    def __init__(self, norm: nn.Module, x: Tensor) -> None:
        """`norm` of any form of this project, or nn.Identity; x (T, D) float64 is the input that sets the scale."""
        self.identity = isinstance(norm, nn.Identity)
        if self.identity:
            self.bias = x.new_zeros(x.shape[-1])
            return
        self.gain, self.bias = (norm.get_parameter(name).detach().double() for name in ("weight", "bias"))
        if isinstance(norm, nn.LayerNorm):
            self.scale = (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
        else:
            epsilon = norm.eps
            assert isinstance(epsilon, float)
            self.scale = x.std(-1, keepdim=True) + epsilon

    def __call__(self, part: Tensor) -> Tensor:
        """Apply the linear map, without the bias: (..., T, D) -> (..., T, D)"""
        if self.identity:
            return part
        return self.gain * (part - part.mean(-1, keepdim=True)) / self.scale


# Why a head looks there: the attention score q.k as a sum over pairs of a query part and a key part.
#
# Both vectors are linear in the residual streams they are read from (the norm before them with its scale held), so the
# score is bilinear in the parts: Elhage et al. (2021), "QK circuits". The cells sum to the score.


_OUT_OF_RANGE_MESSAGES = (
    to_say("There is no head {number}: this attention has {count} of them."),
    to_say("There is no row {number}: this attention has {count} of them."),
    to_say("There is no column {number}: this attention has {count} of them."),
)


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """One attention score before mask and softmax, and the pairs of parts that it is made of."""

    query_parts: tuple[ResidualPart, ...]
    """(Pq,) of the stream that the query is read from; biases of norm and projection first."""
    key_parts: tuple[ResidualPart, ...]
    """(Pk,) the same of the key."""
    cells: np.ndarray
    """(Pq, Pk) float64, summing to the score."""
    score: float
    """As the model computed it, scaled by 1 / sqrt(d) where the model does so."""
    weight: float
    """The attention weight of this cell, after mask and softmax."""

    def group_by_sublayer(self) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
        """Return the matrix with the parts of one sublayer added up: labels of rows, of columns, and cells."""
        rows, columns = _group_by_sublayer(self.query_parts), _group_by_sublayer(self.key_parts)
        summed = [[self.cells[np.ix_(row, column)].sum() for column in columns.values()] for row in rows.values()]
        return tuple(one.label for one in rows), tuple(one.label for one in columns), np.array(summed)


def split_score(
    translator: Translator,
    translation: Translation,
    kind: Kind,
    layer: int,
    head: int,
    query: int,
    key: int,
    recording: PassRecording | None = None,
) -> ScoreParts:
    """Split the score of one cell; all indices count from 0. Raises AttributionError for a cell that is not there."""
    model = translator.model
    if recording is None:
        recording = record_pass(model, translation.source_ids, make_decoder_inputs(translation.target_ids))
    sublayer = _find_sublayer(recording, kind, layer)
    scores, weights = (recording[f"{sublayer.path}.{name}"] for name in ("scores", "weights"))
    for message, at, count in zip(_OUT_OF_RANGE_MESSAGES, (head, query, key), scores.shape, strict=True):
        if not 0 <= at < count:
            raise AttributionError(say(message, number=at + 1, count=count))
    attention = recording.attention(sublayer)
    own = "encoder" if kind == "encoder" else "decoder"
    queries = _split_sublayer_input(recording, own, sublayer, query)
    keys = _split_sublayer_input(recording, own, sublayer, key) if kind != "cross" else _split_memory(recording, key)
    width = attention.q_proj.out_features // attention.heads
    q, k = (
        _project_parts(parts, projection.weight, projection.bias, slice(head * width, (head + 1) * width))
        for parts, projection in ((queries, attention.q_proj), (keys, attention.k_proj))
    )
    cells = (q @ k.T * attention.scale).cpu().numpy()
    return ScoreParts(
        queries.parts, keys.parts, cells, float(scores[head, query, key]), float(weights[head, query, key])
    )


def _find_sublayer(recording: PassRecording, kind: Kind, layer: int) -> Sublayer:
    stack = "encoder" if kind == "encoder" else "decoder"
    found = [one for one in list_sublayers(recording.model, stack) if one.kind == kind]
    if not 0 <= layer < len(found):
        raise AttributionError(
            say(
                "There is no layer {number}: this model has {count} layers with this attention.",
                number=layer + 1,
                count=len(found),
            )
        )
    return found[layer]


def _split_sublayer_input(recording: PassRecording, stack: str, sublayer: Sublayer, row: int) -> ResidualParts:
    parts = split_residual_stream(recording, stack, slice(row, row + 1), before=sublayer)
    return apply_sublayer_norm(sublayer.residual, parts)


def _split_memory(recording: PassRecording, column: int) -> ResidualParts:
    parts = split_residual_stream(recording, "encoder", slice(column, column + 1))
    return parts.apply_norm(find_final_norm(recording, "encoder"))


def _project_parts(parts: ResidualParts, weight: Tensor, bias: Tensor | None, rows: slice) -> Tensor:
    """The parts of one position (P, 1, D) as parts of its query or key (P, d); the bias joins the biases."""
    found = parts.vectors[:, 0] @ weight[rows].detach().double().T
    if bias is not None:
        found[0] += bias[rows].detach().double()
    return found


def _group_by_sublayer(parts: tuple[ResidualPart, ...]) -> dict[ResidualPart, list[int]]:
    groups: dict[ResidualPart, list[int]] = {}
    for at, part in enumerate(parts):
        groups.setdefault(part.sublayer, []).append(at)
    return groups
