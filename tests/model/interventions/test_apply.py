"""Heads off, uniform or copied, masks edited: each held to what it must equal, for one thread, with nothing left."""

from __future__ import annotations

import copy
import json
import threading
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attenscope.capture.attention import capture_attention
from attenscope.decoding.greedy_and_sampling import decode_greedily
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import (
    HeadChange,
    InterventionError,
    MaskChange,
    ModelChange,
    format_changes,
    parse_changes,
)
from attenscope.network.attention import MultiHeadAttention, force_attention_path, make_causal_mask, make_padding_mask
from attenscope.network.config import BOS_ID, PAD_ID
from attenscope.network.layers import DecoderCache
from attenscope.network.transformer import Transformer
from attenscope.trace import KINDS, Kind
from attenscope.translate import Translator
from tests.toy import random_model

SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 4, 3, PAD_ID, PAD_ID]])
TARGET = torch.tensor([[BOS_ID, 11, 12, 13], [BOS_ID, 14, 15, 16]])


def attention(model: Transformer, kind: Kind, layer: int) -> MultiHeadAttention:
    stack = model.encoder if kind == "encoder" else model.decoder
    name = "cross_attention" if kind == "cross" else "self_attention"
    return stack.layers[layer].get_submodule(name)  # type: ignore[return-value]


def with_zeroed_slice(model: Transformer, kind: Kind, layer: int, head: int) -> Transformer:
    """A copy of the model whose output projection reads nothing of one head."""
    changed = copy.deepcopy(model)
    module = attention(changed, kind, layer)
    width = module.out_proj.in_features // module.heads
    with torch.no_grad():
        module.out_proj.weight[:, head * width : (head + 1) * width] = 0
    return changed


def cached(model: Transformer, target: Tensor = TARGET) -> Tensor:
    """Logits of a decoding that is fed one token at a time."""
    memory, mask = model.encode(SOURCE), make_padding_mask(SOURCE, PAD_ID)
    cache = DecoderCache(model.config.decoder_layers)
    states = [model.decode(target[:, [place]], memory, mask, cache=cache) for place in range(target.shape[1])]
    return model.generator(torch.cat(states, 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [0, 1])
def test_a_head_that_is_off_is_its_slice_of_the_output_projection_zeroed(
    tiny_model: Transformer, kind: Kind, head: int
) -> None:
    twin = with_zeroed_slice(tiny_model, kind, 1, head)
    with torch.inference_mode(), apply_changes(tiny_model, [HeadChange(kind, 1, head)]):
        whole, stepwise = tiny_model(SOURCE, TARGET), cached(tiny_model)
    with torch.inference_mode():
        assert torch.equal(whole, twin(SOURCE, TARGET))
        assert torch.equal(stepwise, cached(twin))
        assert not torch.equal(whole, tiny_model(SOURCE, TARGET))


def test_a_translation_with_a_head_off_is_that_of_the_zeroed_model(toy_translator: Translator) -> None:
    model = toy_translator.model
    twin = with_zeroed_slice(model, "cross", 0, 1)
    source = torch.tensor([toy_translator.encode("the old dog sees a red cat here.").ids])
    with apply_changes(model, [HeadChange("cross", 0, 1)]):
        changed = [step.token_id for step in decode_greedily(model, source)]
    assert changed == [step.token_id for step in decode_greedily(twin, source)]


def test_everything_back_on_gives_the_old_logits_bit_by_bit(tiny_model: Transformer) -> None:
    before = tiny_model(SOURCE, TARGET)
    every = [HeadChange(kind, layer, head) for kind in KINDS for layer in (0, 1) for head in (0, 1)]
    with apply_changes(tiny_model, every):
        assert not torch.equal(tiny_model(SOURCE, TARGET), before)
    assert torch.equal(tiny_model(SOURCE, TARGET), before)
    with apply_changes(tiny_model, []):
        assert torch.equal(tiny_model(SOURCE, TARGET), before)
    assert not any(module._forward_hooks for module in tiny_model.modules())


def test_all_heads_off_leave_the_output_bias(tiny_model: Transformer) -> None:
    module = attention(tiny_model, "encoder", 0)
    x = torch.randn(1, 3, 64)
    with apply_changes(tiny_model, [HeadChange("encoder", 0, 0), HeadChange("encoder", 0, 1)]):
        assert torch.equal(module(x, x), module.out_proj.bias.expand(1, 3, 64))


@pytest.mark.parametrize("kind", KINDS)
def test_uniform_weights_on_the_allowed_keys(tiny_model: Transformer, kind: Kind) -> None:
    with apply_changes(tiny_model, [HeadChange(kind, 0, 1, "uniform")]), capture_attention(tiny_model) as capture:
        tiny_model(SOURCE, TARGET)
    for sample in (0, 1):
        one = capture.sample(sample).maps[kind]
        expected = one.mask / one.mask.sum(-1, keepdims=True)
        torch.testing.assert_close(torch.tensor(one.weights[0, 1]), torch.tensor(expected, dtype=torch.float32))
        assert not torch.allclose(torch.tensor(one.weights[0, 0]), torch.tensor(expected, dtype=torch.float32))


def test_a_uniform_row_with_no_key_allowed_stays_zero(tiny_model: Transformer) -> None:
    changes: list[ModelChange] = [HeadChange("cross", 0, 0, "uniform"), MaskChange("cross", query=2)]
    with apply_changes(tiny_model, changes), capture_attention(tiny_model) as capture:
        logits = tiny_model(SOURCE[:1], TARGET[:1])
    assert capture.trace.cross is not None
    assert not capture.trace.cross.weights[:, :, 2].any()
    assert logits.isfinite().all()


def test_copied_weights_are_those_of_the_other_head_and_two_heads_can_swap(tiny_model: Transformer) -> None:
    with capture_attention(tiny_model) as capture:
        tiny_model(SOURCE[:1], TARGET[:1])
    before = capture.trace.encoder
    swap = [HeadChange("encoder", 0, 0, "copy", 1), HeadChange("encoder", 0, 1, "copy", 0)]
    with apply_changes(tiny_model, swap), capture_attention(tiny_model) as capture:
        tiny_model(SOURCE[:1], TARGET[:1])
    after = capture.trace.encoder
    assert before is not None
    assert after is not None
    assert (after.weights[0] == before.weights[0, ::-1]).all()


@pytest.mark.parametrize("change", ["uniform", "copy"])
def test_replaced_heads_in_cached_decoding_are_those_of_the_full_run(tiny_model: Transformer, change: str) -> None:
    text = ", ".join(f"{kind}.2.1:{'head.2' if change == 'copy' else change}" for kind in KINDS)
    with torch.inference_mode(), apply_changes(tiny_model, parse_changes(text)):
        torch.testing.assert_close(cached(tiny_model), tiny_model(SOURCE, TARGET), rtol=1e-5, atol=1e-5)


def test_a_blocked_key_is_seen_by_nobody(tiny_model: Transformer) -> None:
    with apply_changes(tiny_model, [MaskChange("cross", key=1)]), capture_attention(tiny_model) as capture:
        changed = tiny_model(SOURCE[:1], TARGET[:1])
    one = capture.trace.cross
    assert one is not None
    assert not one.weights[..., 1].any()
    assert one.mask.tolist() == [[True, False, True, True, True]] * 4
    own = make_padding_mask(SOURCE[:1], PAD_ID)
    own[..., 1] = False
    assert torch.equal(changed, tiny_model(SOURCE[:1], TARGET[:1], memory_mask=own))


@pytest.mark.parametrize(
    "text",
    [
        *("mask.cross.*.*.2:block", "mask.cross.*.3.2:block", "mask.cross.2.3.1:block", "mask.cross.*.2.*:block"),
        *("mask.decoder.*.3.2:block", "mask.decoder.1.*.1:block", "mask.encoder.*.2.3:block"),
    ],
)
def test_mask_changes_in_cached_decoding_are_those_of_the_full_run(tiny_model: Transformer, text: str) -> None:
    with torch.inference_mode(), apply_changes(tiny_model, parse_changes(text)):
        stepwise, whole = cached(tiny_model), tiny_model(SOURCE, TARGET)
    torch.testing.assert_close(stepwise, whole, rtol=1e-5, atol=1e-5)
    with torch.inference_mode():
        assert not torch.allclose(whole, tiny_model(SOURCE, TARGET), atol=1e-4)


def test_one_edited_cell_is_the_mask_edited_by_hand(tiny_model: Transformer) -> None:
    by_hand = make_causal_mask(4).clone()
    by_hand[..., 2, 1], by_hand[..., 0, 3] = False, True  # one blocked, and one look into the future
    changes = [MaskChange("decoder", query=2, key=1), MaskChange("decoder", query=0, key=3, allowed=True)]
    with apply_changes(tiny_model, changes):
        changed = tiny_model(SOURCE[:1], TARGET[:1])
    assert torch.equal(changed, tiny_model(SOURCE[:1], TARGET[:1], target_mask=by_hand))


def test_positions_that_are_not_there_change_nothing(tiny_model: Transformer) -> None:
    before = tiny_model(SOURCE, TARGET)
    with apply_changes(tiny_model, [MaskChange("cross", key=40), MaskChange("decoder", query=40)]):
        assert torch.equal(tiny_model(SOURCE, TARGET), before)


def test_the_explicit_path_runs_while_heads_are_off(tiny_model: Transformer) -> None:
    """Where the fused kernel is what runs unseen, a context can still be silenced on it when it is forced."""
    with force_attention_path("fused"), apply_changes(tiny_model, [HeadChange("encoder", 1, 0)]):
        fused = tiny_model(SOURCE, TARGET)
    with apply_changes(tiny_model, [HeadChange("encoder", 1, 0)]):
        torch.testing.assert_close(tiny_model(SOURCE, TARGET), fused, rtol=1e-4, atol=1e-5)


def test_another_thread_sees_the_model_as_it_is(tiny_model: Transformer) -> None:
    before, found = tiny_model(SOURCE, TARGET), []
    changes = parse_changes("encoder.1.1:off, cross.1.1:uniform, decoder.1.1:head.2, mask.cross.*.*.1:block")
    with apply_changes(tiny_model, changes):
        thread = threading.Thread(target=lambda: found.append(tiny_model(SOURCE, TARGET)))
        thread.start()
        thread.join()
        assert not torch.equal(tiny_model(SOURCE, TARGET), before)
    assert torch.equal(found[0], before)


def test_two_threads_with_changes_of_their_own(tiny_model: Transformer) -> None:
    wanted = {}
    for head in (0, 1):
        with apply_changes(tiny_model, [HeadChange("cross", 0, head)]):
            wanted[head] = tiny_model(SOURCE, TARGET)
    wrong: list[int] = []

    def run(head: int) -> None:
        for _ in range(10):
            with apply_changes(tiny_model, [HeadChange("cross", 0, head)]):
                if not torch.equal(tiny_model(SOURCE, TARGET), wanted[head]):
                    wrong.append(head)

    threads = [threading.Thread(target=run, args=(head,)) for head in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_exception_leaves_nothing() -> None:
    model = random_model()
    with pytest.raises(RuntimeError, match="on purpose"), apply_changes(model, [MaskChange("cross", key=0)]):
        raise RuntimeError("on purpose")
    assert not any(module._forward_hooks for module in model.modules())


PLACES = st.one_of(st.none(), st.integers(0, 500))
HEADS = st.builds(
    HeadChange, st.sampled_from(KINDS), st.integers(0, 99), st.integers(0, 99), st.sampled_from(["off", "uniform"])
)
COPIES = st.builds(
    HeadChange, st.sampled_from(KINDS), st.integers(0, 99), st.integers(0, 99), st.just("copy"), st.integers(0, 99)
)
MASKS = st.builds(MaskChange, st.sampled_from(KINDS), PLACES, PLACES, PLACES, st.booleans())


@given(st.lists(st.one_of(HEADS, COPIES, MASKS), max_size=5))
def test_changes_survive_text_json_and_hashing(changes: list[ModelChange]) -> None:
    assert parse_changes(json.loads(json.dumps(format_changes(changes)))) == tuple(changes)
    assert hash(tuple(changes)) == hash(parse_changes(format_changes(changes)))


def test_text_counts_from_1() -> None:
    assert str(HeadChange("cross", 1, 2)) == "cross.2.3:off"
    assert str(HeadChange("encoder", 0, 0, "copy", 4)) == "encoder.1.1:head.5"
    assert str(MaskChange("cross", key=3)) == "mask.cross.*.*.4:block"
    assert parse_changes("") == ()


@pytest.mark.parametrize(
    "text",
    ["cross", "cross.0.1:off", "cross.1.1:on", "sideways.1.1:off", "mask.cross.1.1:block", "cross.1.1:head.0", "<b>"],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InterventionError, match=r"is no change to a model\. Write for example"):
        parse_changes(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cross.3.1:off", r"cross.3.1:off: this model has 2 layers of cross attention\."),
        ("cross.1.3:off", r"heads 1 to 2\."),
        ("cross.1.1:head.3", r"heads 1 to 2\."),
        ("cross.1.1:off,cross.1.1:uniform", "changed twice"),
        ("mask.encoder.9.*.1:block", "2 layers of encoder attention"),
    ],
)
def test_what_the_model_does_not_have_is_refused(tiny_model: Transformer, text: str, says: str) -> None:
    with pytest.raises(InterventionError, match=says), apply_changes(tiny_model, parse_changes(text)):
        pass


@pytest.mark.parametrize("fields", [("copy", None), ("off", 1)])
def test_a_source_belongs_to_a_copy(fields: tuple[str, int | None]) -> None:
    with pytest.raises(InterventionError, match="needs the head to copy"):
        HeadChange("cross", 0, 0, *fields)  # type: ignore[arg-type]


def test_a_compiled_model_is_refused_as_nothing_would_change() -> None:
    compiled: Any = torch.compile(random_model(), backend="eager")
    changes = parse_changes("cross.1.1:off")
    with (
        pytest.raises(InterventionError, match=r"change the model that torch\.compile was given"),
        apply_changes(compiled, changes),
    ):
        pass
