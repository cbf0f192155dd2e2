"""Masks drawn in squares: AttentionMaskVisualizer as it prints, and BlockMask, which holds no cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attenscope.cli.diagnose import diagnose_file
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.diagnose import diagnose
from attenscope.masks.read_text import read_printed_tensors

BLOCKS = "BlockMask(shape=(1, 1, 256, 256), sparsity=25.00%, \n(0, 0)\n██  \n████\n)"


def draw(mask: np.ndarray) -> str:
    return "\n".join(" ".join("■" if cell else "⬚" for cell in row) for row in mask)


def saved(tmp_path: Path, text: str) -> str:
    file = tmp_path / "pasted.txt"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("seed", range(6))
def test_squares_are_the_mask_that_they_draw(seed: int, tmp_path: Path) -> None:
    generator = np.random.default_rng(seed)
    mask = generator.random((int(generator.integers(2, 30)), int(generator.integers(2, 30)))) < 0.5
    np.testing.assert_array_equal(read_printed_tensors(draw(mask))[""], mask)
    np.testing.assert_array_equal(read_printed_tensors(draw(mask).replace(" ", ""))[""], mask)


def test_a_causal_mask_in_squares_is_sound(tmp_path: Path) -> None:
    assert diagnose_file(saved(tmp_path, draw(np.tri(4, dtype=bool))), "causal").verdict == "sound"
    assert diagnose_file(saved(tmp_path, draw(np.ones((4, 4), bool))), "causal").verdict == "faulty"


@pytest.mark.parametrize("window", [None, 2])
def test_what_transformers_draws_is_read_whole(window: int | None) -> None:
    visualizer = pytest.importorskip("transformers.utils.attention_visualizer")
    torch = pytest.importorskip("torch")
    words = ["<s>", "It's", "<img>", "<img>", "a", "■"]
    mask, types = torch.ones(6, 6).tril(), torch.tensor([[0, 0, 1, 1, 0, 0]])
    text = visualizer.generate_attention_matrix_from_mask(
        words, mask, sliding_window=window, token_type_ids=types, image_seq_length=2
    )
    found = read_printed_tensors(text)[""]
    want = np.tri(6, dtype=bool)
    want[2:4, 2:4] = True
    if window is None:
        np.testing.assert_array_equal(found, want)
    else:
        np.testing.assert_array_equal(found[0, 0, 0], want)
        near = np.tri(6, dtype=bool) & ~np.tri(6, k=-2, dtype=bool)
        near[2:4, 2:4] = True
        np.testing.assert_array_equal(found[0, 1, 0], near)


@pytest.mark.parametrize("text", ["■ ⬚\n■", "■ ⬚ | ■ ⬚\n■ ⬚", "■ | ■ | ■\n■ | ■ | ■"])
def test_squares_that_are_no_mask_are_refused(text: str) -> None:
    with pytest.raises(DiagnosisError, match="rows have different lengths"):
        read_printed_tensors(text)


def test_a_printed_block_mask_says_what_it_shows(tmp_path: Path) -> None:
    said = diagnose_file(saved(tmp_path, BLOCKS)).reason
    assert "Of 4 squares of about 128 queries and 128 keys, 3 are computed, 0 in part, and 1 skipped" in said
    assert "Block by block it is causal." in said
    assert "create_mask(block_mask.mask_mod, *block_mask.shape)" in said
    assert read_refusal(BLOCKS.replace("██  ", "██")) == said
    assert "no cells" in read_refusal("BlockMask(\n    kv_num_blocks=torch.Size([1, 1, 2]),\n    mask_mod=<lambda>\n)")


def read_refusal(text: str) -> str:
    with pytest.raises(DiagnosisError) as error:
        read_printed_tensors(text)
    return str(error.value)


@pytest.mark.parametrize("size", [256, 300, 5000])
def test_what_torch_prints_of_a_block_mask_is_known_block_by_block(size: int) -> None:
    flex: Any = pytest.importorskip("torch.nn.attention.flex_attention")
    block_mask = flex.create_block_mask(lambda b, h, q, k: q >= k, 1, 2, size, size, device="cpu")
    said = read_refusal(f"mask = {block_mask}")
    assert "Block by block it is causal." in said
    assert "no cells" in read_refusal(repr(block_mask))


@pytest.mark.parametrize(("length", "code"), [(300, ""), (140, "leak"), (20, "leak")])
def test_blocks_that_contradict_the_mask_mod_are_told(length: int, code: str) -> None:
    """A kernel skips blocks that are not listed, and asks the mask_mod in partial ones alone."""
    flex: Any = pytest.importorskip("torch.nn.attention.flex_attention")
    made = flex.create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 300, 300, device="cpu")
    other = flex.BlockMask.from_kv_blocks(
        made.kv_num_blocks,
        made.kv_indices,
        made.full_kv_num_blocks,
        made.full_kv_indices,
        BLOCK_SIZE=128,
        mask_mod=lambda b, h, q, k: (q >= k) & (q - k < length),
        seq_lengths=(300, 300),
    )
    for name in ("mask", "attention_mask", "attn_mask"):
        found = diagnose(**{name: other})
        assert (found.verdict == "faulty") == bool(code)
    in_force = np.tri(300, dtype=bool) & ~np.tri(300, k=-length, dtype=bool)
    in_force[128:256, :128] = True  # the one full block
    assert (diagnose(mask=other, meant=in_force).verdict == "sound") == bool(code) or length == 300
