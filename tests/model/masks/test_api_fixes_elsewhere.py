"""Fixes and converted masks for JAX, Flax and Keras, executed by these libraries where they are installed."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from attenscope.masks.conventions import mask_from_boolean
from attenscope.masks.fixes import write_mask_call
from attenscope.masks.structure import parse_structure

B, H, D = 2, 2, 8
NAMES = (
    *("causal", "padding", "causal+window:3", "window:2", "prefix:2", "causal+packed:3,5", "packed:3,5"),
    *("causal+window:3+sinks:1", "causal+span:3-6", "causal+window:2+span:3-6", "causal+chunked:3"),
)
KEEP = np.arange(8) < np.array([[8], [6]])
DOCUMENT = np.arange(8) >= 3
SIZES = (5, 8)
"""Queries and keys: as many steps of a cached decoder, the newest query at the newest key."""


def installed(name: str) -> ModuleType:
    """The library, Keras by its JAX backend; the test is left out where it is missing."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    return pytest.importorskip(name, reason=f"{name} is not installed: its lines are compiled, not run")


def allowed_cells(name: str, padded: bool) -> np.ndarray:
    """(B, 1, Q, K) bool."""
    allowed = np.broadcast_to(parse_structure(name).build_mask(*SIZES), (B, 1, *SIZES))
    return allowed & KEEP[:, None, None, :] if padded else allowed


def weights_of(q: np.ndarray, k: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Softmax by numpy of (B, T, H, d) under a mask (B, 1 or H, Q, K)."""
    scores = np.where(allowed, np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1]), -np.inf)
    with np.errstate(invalid="ignore"):  # rows without a key are NaN, and not compared
        scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(scores / scores.sum(-1, keepdims=True))


def projected(name: str) -> tuple[np.ndarray, np.ndarray]:
    generator, (queries, keys) = np.random.default_rng(0), SIZES
    q, k = (generator.standard_normal((B, size, H, D)).astype(np.float32) for size in (queries, keys))
    return q, k


@pytest.mark.slow
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_jax_gets_the_mask_that_was_meant(name: str, padded: bool) -> None:
    jax = installed("jax")
    jnp, (queries, keys), (q, k) = jax.numpy, SIZES, projected(name)
    known: dict[str, Any] = {"jax": jax, "jnp": jnp, "Q": queries, "K": keys, "B": B, "H": H}
    known |= {"q": jnp.array(q), "k": jnp.array(k), "v": jnp.array(k), "key_keep": jnp.array(KEEP)}
    exec(write_mask_call("jax", parse_structure(name), padded), known | {"document": jnp.array(DOCUMENT)}, known)
    allowed = allowed_cells(name, padded)
    rows = np.broadcast_to(allowed.any(-1), (B, H, queries)).swapaxes(1, 2)
    want = np.einsum("bhqk,bkhd->bqhd", np.nan_to_num(weights_of(q, k, allowed)), k)
    np.testing.assert_allclose(np.asarray(known["out"])[rows], want[rows], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_keras_gets_the_mask_that_was_meant(name: str, padded: bool) -> None:
    keras = installed("keras")
    (queries, keys), generator = SIZES, np.random.default_rng(0)
    layer = keras.layers.MultiHeadAttention(H, D)
    query, value = (generator.standard_normal((B, size, D)).astype(np.float32) for size in (queries, keys))
    seen: dict[str, Any] = {}

    def scored(query: Any, value: Any, **masks: Any) -> Any:
        out, seen["weights"] = layer(query, value, return_attention_scores=True, **masks)
        return out

    known: dict[str, Any] = {"ops": keras.ops, "layer": scored, "query": query, "value": value, "key_keep": KEEP}
    known |= {"Q": queries, "K": keys, "B": B, "document": DOCUMENT}
    exec(write_mask_call("keras", parse_structure(name), padded), known)
    allowed = np.broadcast_to(allowed_cells(name, padded), (B, H, queries, keys))
    rows = allowed.any(-1)
    np.testing.assert_array_equal((np.asarray(seen["weights"]) > 1e-6)[rows], allowed[rows])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_flax_and_keras_read_a_converted_mask_as_it_was(name: str) -> None:
    allowed, (q, k) = allowed_cells(name, True), projected(name)
    rows = np.broadcast_to(allowed, (B, H, *SIZES)).any(-1)
    linen = installed("flax.linen")
    found = linen.dot_product_attention_weights(q, k, mask=mask_from_boolean(allowed, "flax"))
    np.testing.assert_allclose(np.asarray(found)[rows], weights_of(q, k, allowed)[rows], atol=1e-5)
    keras = installed("keras")
    layer = keras.layers.MultiHeadAttention(H, D)
    given = mask_from_boolean(allowed, "keras")
    flat = [one.reshape(B, -1, H * D) for one in (q, k)]
    _, weights = layer(*flat, attention_mask=given, return_attention_scores=True)
    seen = np.broadcast_to(allowed, (B, H, *SIZES))
    np.testing.assert_array_equal((np.asarray(weights) > 1e-6)[rows], seen[rows])
