"""What goes to the browser as bytes."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from attenscope.decoding.greedy_and_sampling import DecodingStep
from attenscope.language import LANGUAGES, use_language
from attenscope.viz.figures.figure_style import Look
from attenscope.viz.web.component_scripts import FULL_BYTE, MASKED_BYTE, pack_arrays, quantise_weights
from attenscope.viz.web.maps import LinkOptions, encode_heads_overview
from attenscope.viz.web.maps import encode_attention_links as links
from attenscope.viz.web.text_components import encode_shaded_text as text
from attenscope.viz.web.text_components import token_line_data
from tests.viz.fakes import HEADS, LAYERS, FakeTranslator, attention


def unpack(data: bytes) -> tuple[dict, bytes]:
    (length,) = struct.unpack("<I", data[:4])
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def test_pack_keeps_header_and_body() -> None:
    assert unpack(pack_arrays({"tokens": ["</s>", "你好"]}, b"\x00\xff")) == ({"tokens": ["</s>", "你好"]}, b"\x00\xff")


def test_quantise_by_hand() -> None:
    weights = np.array([[0.0, 1.0], [0.5, 0.25]], dtype=np.float32)
    mask = np.array([[True, True], [True, False]])
    np.testing.assert_array_equal(quantise_weights(weights, mask), [[0, FULL_BYTE], [127, MASKED_BYTE]])


def test_no_weight_looks_masked() -> None:
    assert quantise_weights(np.ones((1, 1)), np.ones((1, 1), bool)).max() == FULL_BYTE < MASKED_BYTE


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_label_of_another_head_is_made_of_a_pattern_in_the_readers_language(language: str) -> None:
    one = attention("cross", (" a",), (" b",))
    with use_language(language):
        headers = [
            unpack(links(one, LinkOptions(1, 2), Look(), "fed", (None, None), ""))[0],
            unpack(text(one, 1, 2, Look(), "fed", (None, None), ""))[0],
        ]
    for header in headers:  # as shared/events.js fills it
        assert header["pattern"].replace("{layer}", "2").replace("{head}", "3") == header["label"]


def test_the_overview_is_one_byte_a_weight_and_a_small_header() -> None:
    words = tuple(f" word{i}" for i in range(64))
    one = attention("decoder", words, words, words)
    data = encode_heads_overview(one, 1, 2, Look())
    header, body = unpack(data)
    assert len(body) == one.weights.size
    assert len(data) < 1.5 * one.weights.size
    assert (header["layers"], header["heads"], header["queries"], header["keys"]) == (LAYERS, HEADS, 64, 64)
    assert (header["layer"], header["head"]) == (1, 2)
    tile = np.frombuffer(body, np.uint8).reshape(one.weights.shape)[1, 2]
    np.testing.assert_allclose(tile[one.mask] / FULL_BYTE, one.weights[1, 2][one.mask], atol=1 / FULL_BYTE)
    assert (tile[~one.mask] == MASKED_BYTE).all()


def test_pieces_tell_doubt_and_the_end() -> None:
    made = token_line_data(FakeTranslator().translate("a <b> c").steps, None)["pieces"]
    assert [piece["text"] for piece in made] == [" A", " <B>", " C", "</s>"]
    assert made[0]["doubt"] == pytest.approx(0.6)
    assert [piece["special"] for piece in made] == [False, False, False, True]
    assert made[0]["note"] == "A 40%; next best: other 5.0%"


def test_a_piece_cut_off_is_not_the_end() -> None:
    assert not token_line_data([DecodingStep(0, 5, -0.1, (), " so", "length")], None)["pieces"][0]["special"]
