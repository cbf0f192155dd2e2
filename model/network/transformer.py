"""The Transformer of Vaswani et al. (2017), Figure 1, and its faster decoding step when unobserved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from ..fast_linear import Dropout, Linear
from ..torch_internals import has_hooks, is_function_mode_active
from .abstract_model import AutoregressiveModel, DecodingCache, Side
from .attention import (
    KeyValueCache,
    MultiHeadAttention,
    choose_attention_path,
    combine_masks,
    compute_masked_softmax,
    make_causal_mask,
    make_padding_mask,
    merge_beams_into_queries,
    split_beams_from_queries,
)
from .config import BOS_ID, EOS_ID, PAD_ID, TransformerConfig
from .hooks import HookPoint, Stream, is_observed, record_outputs
from .layers import (
    AddedPositions,
    DecoderCache,
    DecoderLayer,
    DecoderShortcut,
    EncoderLayer,
    LayerCache,
    PositionalEncoding,
    Residual,
    make_layer_norm,
)


class Embedding(nn.Module):
    """Token embedding (times sqrt(D) if asked) plus positional encoding, sections 3.4 and 3.5.

    Hook points ``tokens`` (B, T, D) scaled token embeddings, ``encoding`` (1 or B, T, D), ``stream`` their sum.
    """

    def __init__(self, config: TransformerConfig, table: nn.Embedding) -> None:
        super().__init__()
        self.table = table
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.positional_encoding = PositionalEncoding(config)
        self.dropout = Dropout(config.dropout_at("embedding"))
        self.tokens, self.encoding, self.stream = HookPoint(), HookPoint(), HookPoint()

    def forward(self, ids: Tensor, offset: int = 0) -> Tensor:
        """ids (B, T) -> (B, T, D); `offset` positions were decoded before."""
        tokens = self.tokens(self.table(ids) * self.scale)
        return self.stream(self.dropout(tokens + self.encoding(self.positional_encoding(ids != PAD_ID, offset))))


class Stack(nn.Module):
    """N layers and, where the config asks for it, a final norm. Hook point ``output`` (B, T, D)."""

    def __init__(self, config: TransformerConfig, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = make_layer_norm(config) if config.final_norm else nn.Identity()
        self.output = HookPoint()


class Encoder(Stack):
    """The left half of Figure 1, without its embedding."""

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, S, D), mask broadcastable to (B, H, S, S) -> (B, S, D)"""
        for layer in self.layers:
            x = layer(x, mask)
        return self.output(self.final_norm(x))


class Decoder(Stack):
    """The right half of Figure 1, without its embedding and its linear layer."""

    def forward(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, memory_mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        """x (B, T, D), memory (B, S, D), masks broadcastable to (B, H, T, T) and (B, H, T, S) -> (B, T, D)"""
        if cache and cache.shortcut and cache.length and mask is None and can_use_decoder_shortcut(x.device):
            x = cache.shortcut(x, memory_mask, cache.layers)
        else:
            for index, layer in enumerate(self.layers):
                x = layer(x, memory, mask, memory_mask, cache.layers[index] if cache else None)
        return self.output(self.final_norm(x))


class Transformer(AutoregressiveModel):
    """Source and target token ids in, logits out. All masks are boolean, True = may attend."""

    generator: Linear

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        source = nn.Embedding(config.vocab_size, config.d_model)
        target = source if config.shared_embedding else nn.Embedding(config.target_vocab_size, config.d_model)
        self.source_embedding, self.target_embedding = Embedding(config, source), Embedding(config, target)
        self.encoder = Encoder(config, [EncoderLayer(config) for _ in range(config.encoder_layers)])
        self.decoder = Decoder(config, [DecoderLayer(config) for _ in range(config.decoder_layers)])
        self.generator = Linear(config.d_model, config.target_vocab_size, bias=config.generator_bias)
        if config.init != "torch":
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)
        if config.init == "xavier_normal_embedding":
            for table in dict.fromkeys((source, target)):
                nn.init.normal_(table.weight, std=config.d_model**-0.5)
        if config.tied_generator:
            self.generator.weight = target.weight
        if config.equal_layers:
            for stack in (self.encoder, self.decoder):
                for layer in stack.layers[1:]:
                    layer.load_state_dict(stack.layers[0].state_dict())

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """source (B, S), target (B, T) ids -> logits (B, T, V).

        Masks are broadcastable to (B, H, S, S), (B, H, T, T) and (B, H, T, S); one that is None is made from the
        padding (and, for the target, from causality).
        """
        memory = self.encode(source, source_mask)
        memory_mask = make_padding_mask(source, PAD_ID) if memory_mask is None else memory_mask
        return self.generator(self.decode(target, memory, memory_mask, target_mask))

    @property
    def start_id(self) -> int:
        return BOS_ID

    @property
    def end_ids(self) -> tuple[int, ...]:
        return (EOS_ID,)

    @property
    def pad_id(self) -> int:
        return PAD_ID

    def token_embedding(self, side: Side) -> nn.Module:
        return self._get_embedding_of_side(side).tokens

    def added_positions(self, side: Side) -> AddedPositions:
        embedding = self._get_embedding_of_side(side)
        return embedding.positional_encoding.make_added_positions(embedding.encoding, embedding.scale)

    def streams(self, side: Side) -> Mapping[str, Stream]:
        layers = (self.encoder if side == "source" else self.decoder).layers
        streams = [one.get_submodule("after_feed_forward.stream") for one in layers]
        behind = {f"layer {number}": Stream(one) for number, one in enumerate(streams, start=1)}
        return {"embedding": Stream(self._get_embedding_of_side(side).stream), **behind}

    def _get_embedding_of_side(self, side: Side) -> Embedding:
        return self.source_embedding if side == "source" else self.target_embedding

    def room(self, source_tokens: int) -> int:
        return self.config.max_length - 1

    def source_mask(self, source: Tensor) -> Tensor:
        return make_padding_mask(source, PAD_ID)

    def new_cache(self) -> DecoderCache:
        return DecoderCache(self.config.decoder_layers, make_decoder_shortcut(self.decoder.layers))

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        """source (B, S) ids -> memory (B, S, D)"""
        mask = make_padding_mask(source, PAD_ID) if mask is None else mask
        return self.encoder(self.source_embedding(source), mask)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        mask: Tensor | None = None,
        cache: DecodingCache | None = None,
    ) -> Tensor:
        """target (B, T) ids, memory (B, S, D) -> states (B, T, D) for the generator.

        With a cache, `target` holds only the tokens that are new; padding among the cached ones is not looked for.
        """
        assert cache is None or isinstance(cache, DecoderCache)
        offset = cache.length if cache else 0
        if mask is None:
            mask = self._target_mask(target, offset)
        return self.decoder(self.target_embedding(target, offset), memory, mask, memory_mask, cache)

    def predictions(self, source: Tensor, target: Tensor, *, sublayers: bool = False) -> Iterator[tuple[str, Tensor]]:
        paths = _map_stream_paths_to_names(self.config.decoder_layers, sublayers=sublayers)
        with record_outputs(self, *paths) as streams:
            self(source, target)
        for path, name in paths.items():  # one place at a time: all of them at once are P x T x V numbers
            yield name, self.generator(self.decoder.final_norm(streams[path]))

    def _target_mask(self, target: Tensor, offset: int) -> Tensor | None:
        length = target.shape[1]
        if offset and length == 1:
            return None  # the newest token may attend to all before it
        causal = make_causal_mask(length, offset + length, target.device)
        return causal if offset else combine_masks(causal, make_padding_mask(target, PAD_ID))


_SUBLAYER_NAMES = {
    "after_self_attention": "self-attention",
    "after_cross_attention": "cross-attention",
    "after_feed_forward": "feed-forward",
}


def _map_stream_paths_to_names(layers: int, *, sublayers: bool) -> dict[str, str]:
    """Module path of each place along the decoder's stream -> its name."""
    paths = {"target_embedding.stream": "embedding"}
    for layer in range(layers):
        for path, name in _SUBLAYER_NAMES.items():
            if sublayers:
                paths[f"decoder.layers.{layer}.{path}.stream"] = f"layer {layer + 1} {name}"
        if not sublayers:
            paths[f"decoder.layers.{layer}.after_feed_forward.stream"] = f"layer {layer + 1}"
    return paths


# A step of decoding that nobody observes: the layers' own sums, in their order, without a call of each module.
#
# A step through the modules makes a hundred calls and passes eighty hook points, which for a single row takes longer
# than what is computed. The numbers are the same to the last digit; a test compares both.


SublayerFunction = Callable[[Tensor], Tensor]


def can_use_decoder_shortcut(device: torch.device) -> bool:
    """Whether this thread computes on the explicit path now, unobserved and without gradients."""
    looked_at = torch.is_grad_enabled() or is_observed() or is_function_mode_active()
    return not looked_at and choose_attention_path(device) == "explicit"


def make_decoder_shortcut(layers: Iterable[nn.Module]) -> DecoderShortcut | None:
    """Return a way through decoder layers for one decoding; None where one is in training or has a hook of anybody."""
    parts = []
    for layer in layers:
        if not isinstance(layer, DecoderLayer) or layer.training or any(map(has_hooks, layer.modules())):
            return None
        parts.append(_ShortcutLayer(layer))

    def run_layers(x: Tensor, memory_mask: Tensor | None, caches: Sequence[LayerCache]) -> Tensor:
        for part, cache in zip(parts, caches, strict=True):
            x = part(x, memory_mask, cache.self_attention, cache.cross_attention)
        return x

    return run_layers


class _ShortcutLayer:
    def __init__(self, layer: DecoderLayer) -> None:
        self.own, self.other = _ShortcutAttention(layer.self_attention), _ShortcutAttention(layer.cross_attention)
        self.inner, self.outer = layer.feed_forward.inner.forward, layer.feed_forward.outer.forward
        self.around_own, self.around_other = (
            _make_residual_function(layer.after_self_attention),
            _make_residual_function(layer.after_cross_attention),
        )
        self.around_feed_forward = _make_residual_function(layer.after_feed_forward)

    def __call__(self, x: Tensor, memory_mask: Tensor | None, own: KeyValueCache, other: KeyValueCache) -> Tensor:
        x = self.around_own(x, lambda y: self.own(y, *own.append(*self.own.keys_values(y)), None))
        x = self.around_other(x, lambda y: self.other(y, *other.stored_keys_values(), memory_mask))
        return self.around_feed_forward(x, lambda y: self.outer(self.inner(y).relu()))


class _ShortcutAttention:
    def __init__(self, attention: MultiHeadAttention) -> None:
        projections = attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj
        self.q, self.k, self.v, self.out = (one.forward for one in projections)
        self.heads, self.scale = attention.heads, attention.scale

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, 1, D) -> (B, H, 1, d) each"""
        size = x.shape[0], self.heads, 1, -1
        return self.k(x).view(size), self.v(x).view(size)

    def __call__(self, x: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, 1, D), k and v (B, H, K, d) or of fewer sentences, whose hypotheses share them -> (B, 1, D)"""
        rows, memories = x.shape[0], k.shape[0]
        q = self.q(x) * self.scale
        if memories == rows and mask is None:  # one token has one row of each head, which lie as they are multiplied
            weights = torch.bmm(q.view(rows * self.heads, 1, -1), k.flatten(0, 1).mT).softmax(-1)
            return self.out(torch.bmm(weights, v.flatten(0, 1)).view(x.shape))
        q = q.view(rows, self.heads, 1, -1)
        scores = (merge_beams_into_queries(q, memories) if memories < rows else q) @ k.mT
        weights = compute_masked_softmax(scores if mask is None else scores.masked_fill(~mask, -math.inf), mask)
        context = split_beams_from_queries(weights @ v) if memories < rows else weights @ v
        return self.out(context.reshape(x.shape))


def _make_residual_function(residual: Residual) -> Callable[[Tensor, SublayerFunction], Tensor]:
    norm = residual.norm.forward
    if residual.pre:
        return lambda x, sublayer: x + sublayer(norm(x))
    return lambda x, sublayer: norm(x + sublayer(x))
