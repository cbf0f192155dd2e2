"""Traces: shapes checked, saved and loaded whole, without torch, and anything else refused with a sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from attenscope.trace import KINDS, TENSOR_NAMES, TRACE_FORMAT, AttentionMap, AttentionTrace, TraceError, replace_tokens

L, H, Q, K, D = 2, 3, 4, 5, 6
SHAPES = {
    "q": (L, H, Q, D),
    "k": (L, H, K, D),
    "v": (L, H, K, D),
    "scores": (L, H, Q, K),
    "masked_scores": (L, H, Q, K),
}


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def cross(**changed: Any) -> AttentionMap:
    fields: dict[str, Any] = {
        "kind": "cross",
        "weights": array(L, H, Q, K),
        "query_tokens": ("<s>", " der", " Hund", "."),
        "key_tokens": (" the", " 狗😀", "<script>", '"\\', "</s>"),
        "mask": np.tri(Q, K, dtype=bool),
        "predicted_tokens": (" der", " Hund", ".", "</s>"),
        "tensors": {name: array(*shape) for name, shape in SHAPES.items()},
        "special_tokens": frozenset({" 狗😀"}),
    }
    return AttentionMap(**{**fields, **changed})


def encoder(length: int = 3) -> AttentionMap:
    tokens = tuple(f"t{number}" for number in range(length))
    return AttentionMap("encoder", array(1, 2, length, length), tokens, tokens, np.ones((length, length), dtype=bool))


def trace() -> AttentionTrace:
    return AttentionTrace(
        encoder=encoder(),
        cross=cross(),
        source="the 狗😀",
        target="der Hund.",
        model="toy",
        model_hash="0123456789ab",
        settings={"device": "cpu", "beam": 1, "nested": {"a": [1, 2.5, None, True]}},
    )


def same(one: AttentionTrace, other: AttentionTrace) -> bool:
    assert one.maps.keys() == other.maps.keys()
    for kind, mine in one.maps.items():
        theirs = other.maps[kind]
        for name in ("query_tokens", "key_tokens", "predicted_tokens", "special_tokens"):
            assert getattr(mine, name) == getattr(theirs, name)
        arrays = {"weights": mine.weights, "mask": mine.mask, **mine.tensors}
        loaded = {"weights": theirs.weights, "mask": theirs.mask, **theirs.tensors}
        assert arrays.keys() == loaded.keys()
        for name, values in arrays.items():
            assert values.dtype == loaded[name].dtype
            np.testing.assert_array_equal(values, loaded[name])
    names = ("source", "target", "model", "model_hash", "settings")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def test_round_trip(tmp_path: Path) -> None:
    trace().save(tmp_path / "trace.safetensors")
    assert same(trace(), AttentionTrace.load(tmp_path / "trace.safetensors"))


def test_round_trip_of_arrays_that_are_not_contiguous(tmp_path: Path) -> None:
    turned = cross(weights=array(K, Q, H, L).transpose(), tensors={"q": array(L, H, D, Q).swapaxes(2, 3)})
    AttentionTrace(cross=turned).save(tmp_path / "t")
    assert same(AttentionTrace(cross=turned), AttentionTrace.load(tmp_path / "t"))


@given(st.text(max_size=20), st.lists(st.text(max_size=5), min_size=1, max_size=4))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, text: str, tokens: list[str]) -> None:
    path = tmp_path_factory.mktemp("trace") / "t"
    saved = AttentionTrace(
        encoder=replace_tokens(encoder(len(tokens)), tuple(tokens), tuple(tokens)), source=text, settings={text: text}
    )
    saved.save(path)
    assert same(saved, AttentionTrace.load(path))


def test_a_place_that_cannot_be_written_is_an_ordinary_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        trace().save(tmp_path / "absent" / "t")


def test_loads_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "t"
    trace().save(path)
    program = (
        "import sys; from attenscope.trace import AttentionTrace; t = AttentionTrace.load(sys.argv[1]);"
        "assert t.cross.weights.shape == (2, 3, 4, 5); loaded = {'torch', 'streamlit', 'plotly'} & set(sys.modules);"
        "sys.exit(f'{loaded} was imported' if loaded else 0)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program, str(path)], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"kind": "self"}, "kind is 'self'; it must be one of encoder, decoder, cross"),
        ({"weights": array(H, Q, K)}, r"axes \(L, H, Q, K\); these have \(3, 4, 5\)"),
        ({"mask": np.ones((K, Q), dtype=bool)}, r"mask have the shape \(5, 4\), but its weights \(2, 3, 4, 5\)"),
        ({"query_tokens": ("a",)}, r"query tokens have the shape \(1,\)"),
        ({"key_tokens": ()}, "key tokens"),
        ({"predicted_tokens": ("a",)}, "predicted tokens"),
        ({"tensors": {"logits": array(1)}}, "cannot hold 'logits'; it holds q, k, v, scores, masked_scores"),
        ({"tensors": {"q": array(L, H, K, D)}}, "q have the shape"),
        ({"tensors": {"k": array(L, H, Q, D)}}, "k have the shape"),
        ({"tensors": {"v": array(L, H, K)}}, "v have the shape"),
        ({"tensors": {"scores": array(L, H, Q, K + 1)}}, "scores have the shape"),
        ({"tensors": {"masked_scores": array(L, H + 1, Q, K)}}, "masked_scores have the shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_with_both(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(TraceError, match=says):
        cross(**changed)


def test_a_map_in_the_wrong_place_is_refused() -> None:
    with pytest.raises(TraceError, match="given as encoder says that it is a cross map"):
        AttentionTrace(encoder=cross())


def test_maps_are_in_order_and_rows_carry_both_labels() -> None:
    assert list(trace().maps) == ["encoder", "cross"]
    assert trace().cross is not None
    assert cross().rows("fed") == ("<s>", " der", " Hund", ".")
    assert cross().rows("predicted") == (" der", " Hund", ".", "</s>")
    assert encoder().rows("predicted") == encoder().rows("fed")
    assert (cross().layers, cross().heads) == (L, H)


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        cross().kind = "encoder"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace().source = ""  # type: ignore[misc]


def refused(path: Path) -> str:
    with pytest.raises(TraceError) as error:
        AttentionTrace.load(path)
    message = str(error.value)
    assert message[0].isupper()
    assert message.endswith(".")
    return message


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    trace().save(tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    for length in [*range(0, 40), *range(40, len(data), 97), len(data) - 1]:
        (tmp_path / "cut").write_bytes(data[:length])
        refused(tmp_path / "cut")


@given(st.integers(0, 2000), st.integers(0, 255))
def test_a_changed_byte_gives_a_trace_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    trace().save(folder / "t")
    data = bytearray((folder / "t").read_bytes())
    data[place % len(data)] = value
    (folder / "t").write_bytes(data)
    with contextlib.suppress(TraceError):  # any other exception fails the test
        AttentionTrace.load(folder / "t")


@pytest.mark.parametrize("data", [b"", b"\x80\x04cos\nsystem\n(S'true'\ntR.", b"PK\x03\x04", b"{}", b"\xff" * 64])
def test_foreign_files_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t").write_bytes(data)
    refused(tmp_path / "t")


def test_what_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "absent")
    refused(tmp_path)


def test_safetensors_of_another_program_are_refused(tmp_path: Path) -> None:
    save_file({"weight": array(2, 2)}, tmp_path / "t")
    assert "not an Attenscope trace" in refused(tmp_path / "t")
    save_file({"weight": array(2, 2)}, tmp_path / "t", metadata={"format": "pt"})
    assert "not an Attenscope trace" in refused(tmp_path / "t")


def described(**changed: Any) -> dict[str, Any]:
    tokens = {name: list(getattr(cross(), name)) for name in ("query_tokens", "key_tokens", "predicted_tokens")}
    texts = {"source": "", "target": "", "model": "", "model_hash": ""}
    return {"cross": tokens, **texts, "settings": {}, **changed}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "null",
        "5",
        "[]",
        '"cross"',
        "[" * 200_000,
        json.dumps(described(cross=None)),
        json.dumps(described(cross=[1])),
        json.dumps(described(cross={"query_tokens": 5, "key_tokens": [], "predicted_tokens": []})),
        json.dumps(described(settings=5)),
        json.dumps(described(settings="abc")),
        json.dumps(described(encoder={"query_tokens": [], "key_tokens": [], "predicted_tokens": []})),
        json.dumps({"cross": described()["cross"]}),
    ],
    ids=lambda text: text[:30],
)
def test_hostile_headers_are_refused(tmp_path: Path, text: str) -> None:
    arrays = {"cross.weights": array(L, H, Q, K), "cross.mask": np.ones((Q, K), dtype=bool)}
    save_file(arrays, tmp_path / "t", metadata={"format": TRACE_FORMAT, "trace": text})
    refused(tmp_path / "t")


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"cross.weights": array(L, H, Q, K)},
        {"cross.mask": np.ones((Q, K), dtype=bool)},
        {"cross.weights": array(Q, K), "cross.mask": np.ones((Q, K), dtype=bool)},
        {"cross.weights": array(L, H, Q, K), "cross.mask": np.ones((Q, K), dtype=bool), "cross.evil": array(1)},
        {"cross.weights": array(L, H, Q, K), "cross.mask": np.ones((Q, K), dtype=bool), "cross.q": array(1)},
        {"cross.weights": np.ones((L, H, Q, K), dtype=np.int64), "cross.mask": np.ones((Q, K), dtype=bool)},
    ],
)
def test_hostile_arrays_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    save_file(arrays, tmp_path / "t", metadata={"format": TRACE_FORMAT, "trace": json.dumps(described())})
    refused(tmp_path / "t")


def test_a_dtype_numpy_does_not_know_is_refused(tmp_path: Path) -> None:
    """bfloat16, written by hand: safetensors' numpy side has no such type."""
    header = {
        "__metadata__": {"format": TRACE_FORMAT, "trace": json.dumps(described())},
        "cross.weights": {"dtype": "BF16", "shape": [L, H, Q, K], "data_offsets": [0, 2 * L * H * Q * K]},
    }
    text = json.dumps(header).encode()
    (tmp_path / "t").write_bytes(len(text).to_bytes(8, "little") + text + bytes(2 * L * H * Q * K))
    refused(tmp_path / "t")


def test_names_of_the_format_stay() -> None:
    """Files saved today must load tomorrow."""
    assert KINDS == ("encoder", "decoder", "cross")
    assert TENSOR_NAMES == ("q", "k", "v", "scores", "masked_scores")
    assert TRACE_FORMAT == "attenscope-trace-1"


@pytest.mark.parametrize("shape", [(L, 1, Q, K), (L, H, Q, K)])
def test_layers_may_have_masks_of_their_own(shape: tuple[int, ...], tmp_path: Path) -> None:
    own = array(*shape) > 0.3
    one = cross(layer_masks=own, mask=own.any((0, 1)))
    AttentionTrace(cross=one).save(tmp_path / "t.safetensors")
    again = AttentionTrace.load(tmp_path / "t.safetensors").cross
    assert again is not None
    np.testing.assert_array_equal(again.masks, own)
    np.testing.assert_array_equal(again.mask_of(1, 2), own[1, 2 if shape[1] > 1 else 0])
    np.testing.assert_array_equal(cross().masks, np.broadcast_to(cross().mask, (L, 1, Q, K)))


@pytest.mark.parametrize("shape", [(1, 1, Q, K), (L, 2, Q, K), (L, 1, K, Q), (Q, K)])
def test_masks_of_layers_must_fit_the_weights(shape: tuple[int, ...]) -> None:
    with pytest.raises(TraceError, match="layer masks have the shape"):
        cross(layer_masks=np.ones(shape, dtype=bool))
