"""The eight behaviour tests: each catches a fault planted in a small model, and correct models pass."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.behaviour.checks import examine
from model.behaviour.hugging_face import from_hugging_face
from model.behaviour.outcomes import CHECKS, Outcome
from model.behaviour.subject import SIDES, Subject
from model.behaviour.subjects import from_encoder, from_ids, from_transformer
from model.testing import assert_batch_invariant, assert_no_future_leak, assert_padding_ignored

T, D = 7, 16
KEEP = torch.tensor([[True] * T, [True] * 5 + [False] * 2])
IDS = torch.randint(1, 50, (2, T), generator=torch.Generator().manual_seed(3))
SIZES: dict[str, Any] = {"vocab_size": 60}
LEAK = r"future-token \(B1\): .*gradient-reach \(B5\): output 1 of sample 1 depends on input 2"


class Small(nn.Module):
    """Two layers of attention whose mask can be spoiled in one place at a time."""

    def __init__(self, fault: str = "", causal: bool = True) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.fault, self.causal = fault, causal
        self.embedding = nn.Embedding(50, D)
        self.layers = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(2))

    def mask(self, keep: Tensor) -> Tensor:
        allowed = keep[:, None, :].expand(-1, keep.shape[1], -1)
        if self.fault == "padding":
            allowed = torch.ones_like(allowed)
        if self.causal:
            allowed = allowed.tril(1 if self.fault == "future" else 0)
        return allowed

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        for layer in self.layers:
            q, k, v = layer(x).chunk(3, -1)
            scores = (q @ k.mT / 4).masked_fill(~self.mask(keep), -1e9)
            x = x + scores.softmax(-1) @ v
        if self.fault == "neighbour":
            x = x + 1e-3 * x.mean(0)
        return x


def subject(fault: str = "", causal: bool = True, **more: Any) -> Subject:
    model = Small(fault, causal).eval()
    torch.manual_seed(2)
    return Subject(model, torch.randn(2, T, D), KEEP, causal, **more)


def verdicts(one: Subject) -> dict[str, str]:
    return {outcome.code: outcome.status for outcome in examine(one)}


def faults(outcomes: tuple[Outcome, ...]) -> list[str]:
    return [one.code for one in outcomes if one.status == "fault"]


def test_a_correct_decoder_passes_everything_that_applies() -> None:
    model = Small().eval()
    found = verdicts(subject(others={"again": model}, cached=model))
    assert found == dict.fromkeys((check.code for check in CHECKS), "pass") | {"position-free": "not applicable"}


def test_future_token_catches_a_future_that_leaks_by_one() -> None:
    assert verdicts(subject("future"))["future-token"] == "fault"


def test_future_token_catches_a_leak_of_one_in_ten_thousand() -> None:
    model = Small().eval()

    def leaky(x: Tensor, keep: Tensor) -> Tensor:
        return model(x, keep) + 1e-4 * x.roll(-1, 1)

    assert verdicts(dataclasses.replace(subject(), run=leaky))["future-token"] == "fault"


def test_padding_content_catches_padding_that_is_seen() -> None:
    assert verdicts(subject("padding", causal=False))["padding-content"] == "fault"


def test_padding_amount_catches_an_output_that_depends_on_the_amount_of_padding() -> None:
    model = Small(causal=False).eval()

    def by_length(x: Tensor, keep: Tensor) -> Tensor:
        return model(x, keep) * keep.shape[1]

    assert verdicts(dataclasses.replace(subject(causal=False), run=by_length))["padding-amount"] == "fault"


def test_batch_neighbour_catches_a_mean_over_the_batch() -> None:
    assert verdicts(subject("neighbour"))["batch-neighbour"] == "fault"


@pytest.mark.parametrize("fault", ["future", "padding"])
def test_gradient_reach_catches_a_gradient_from_what_is_masked(fault: str) -> None:
    assert verdicts(subject(fault, causal=fault == "future"))["gradient-reach"] == "fault"


def test_gradient_reach_lets_windows_add_up_over_layers_and_no_further() -> None:
    def window(size: int) -> Tensor:
        return (torch.ones(size, size).tril() - torch.ones(size, size).tril(-2)).bool()

    class Windowed(Small):
        def mask(self, keep: Tensor) -> Tensor:
            return window(keep.shape[1]) & keep[:, None, :]

    torch.manual_seed(2)
    one = Subject(Windowed().eval(), torch.randn(2, T, D), KEEP, True, layers=2, allowed=window(T))
    assert verdicts(one)["gradient-reach"] == "pass"
    assert verdicts(dataclasses.replace(one, layers=1))["gradient-reach"] == "fault"


def test_gradient_reach_catches_a_token_that_never_arrives() -> None:
    model = Small(causal=False).eval()

    def deaf(x: Tensor, keep: Tensor) -> Tensor:
        return model(torch.cat([x[:, :1].detach(), x[:, 1:]], 1), keep)

    assert verdicts(dataclasses.replace(subject(causal=False), run=deaf))["gradient-reach"] == "fault"


def test_observer_catches_an_observer_that_changes_the_output() -> None:
    model = Small().eval()
    assert verdicts(subject(others={"with capture": lambda x, keep: model(x, keep) * 1.01}))["observer"] == "fault"


def test_cache_catches_a_cache_that_forgets() -> None:
    model = Small().eval()

    def forgetful(x: Tensor, keep: Tensor) -> Tensor:
        return torch.cat([model(x[:, t : t + 1], keep[:, t : t + 1]) for t in range(x.shape[1])], 1)

    assert verdicts(subject(cached=forgetful))["cache"] == "fault"


def test_position_free_catches_a_hidden_position() -> None:
    model = Small(causal=False).eval()
    assert verdicts(subject(causal=False, unpositioned=model))["position-free"] == "pass"
    ramp = torch.linspace(0, 1, T)[:, None]
    assert (
        verdicts(subject(causal=False, unpositioned=lambda x, keep: model(x + ramp, keep)))["position-free"] == "fault"
    )


def test_nan_counts_as_a_fault() -> None:
    model = Small().eval()
    broken = dataclasses.replace(subject(), run=lambda x, keep: model(x, keep) * float("nan"))
    assert {"future-token", "padding-content", "batch-neighbour"} <= set(faults(examine(broken)))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm_first", [False, True])
def test_torch_transformer_passes(norm_first: bool) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Transformer(32, 4, 2, 2, 64, batch_first=True, norm_first=norm_first).eval()
    target_keep = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    for one in from_transformer(model, torch.randn(2, T, 32), torch.randn(2, 6, 32), KEEP, target_keep).values():
        assert faults(examine(one)) == []


def test_a_plain_encoder_is_judged_on_six_tests() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    found = verdicts(from_encoder(encoder, torch.randn(2, T, 32), KEEP))
    assert [code for code, status in found.items() if status == "not applicable"] == ["future-token", "cache"]
    assert "fault" not in found.values()


def hugging_face(name: str, **more: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    wide = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    each = ("layers", 2), ("attention_heads", 4), ("ffn_dim", 64)
    bart = {f"{part}_{key}": value for part in ("encoder", "decoder") for key, value in each}
    sizes: dict[str, dict[str, Any]] = {
        "BertModel": wide,
        "GPT2LMHeadModel": {"n_embd": 32, "n_layer": 2, "n_head": 4},
        "T5ForConditionalGeneration": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
        "BartForConditionalGeneration": {"d_model": 32, "max_position_embeddings": 64, **bart},
        "RoFormerForCausalLM": wide | {"embedding_size": 32},
        "LlamaModel": wide | {"num_key_value_heads": 2},
        "LlamaForTokenClassification": wide | {"num_key_value_heads": 2},
        "MistralForCausalLM": wide | {"num_key_value_heads": 2},
        "OPTModel": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64},
    }
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    return kind(kind.config_class(**SIZES, **sizes[name], **more)).eval()


CORRECT = ["BertModel", "GPT2LMHeadModel", "T5ForConditionalGeneration", "BartForConditionalGeneration"]


@pytest.mark.parametrize("name", CORRECT)
def test_correct_hugging_face_models_pass(name: str) -> None:
    model = hugging_face(name)
    ids, target = torch.randint(5, 50, (2, T)), torch.randint(5, 50, (2, 6))
    for one in from_hugging_face(model, ids, KEEP, target).values():
        assert faults(examine(one)) == []


def test_gpt2_is_judged_on_all_but_permutation() -> None:
    found = verdicts(from_hugging_face(hugging_face("GPT2LMHeadModel"), torch.randint(5, 50, (2, T)), KEEP)["model"])
    assert [code for code, status in found.items() if status == "not applicable"] == ["position-free"]


def test_roformer_for_causal_lm_is_bidirectional_by_default() -> None:
    ids = torch.randint(5, 50, (2, T))
    assert "future-token" in faults(examine(from_hugging_face(hugging_face("RoFormerForCausalLM"), ids, KEEP)["model"]))
    right = hugging_face("RoFormerForCausalLM", is_decoder=True)
    assert faults(examine(from_hugging_face(right, ids, KEEP)["model"])) == []


@pytest.mark.parametrize("name", ["LlamaModel", "LlamaForTokenClassification", "OPTModel", *CORRECT[1:]])
def test_decoders_and_encoder_decoders_hide_the_future(name: str) -> None:
    assert_no_future_leak(hugging_face(name), IDS)


def test_an_encoder_does_not_hide_the_future() -> None:
    with pytest.raises(AssertionError, match=LEAK):
        assert_no_future_leak(hugging_face("BertModel"), IDS)


def test_a_llama_that_sees_everything_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hugging_face("LlamaModel")
    closed = type(model).forward

    def all_open(self: Any, attention_mask: Tensor, position_ids: Tensor, **more: Any) -> Any:
        mask = attention_mask.bool()[:, None, None, :].expand(-1, 1, attention_mask.shape[1], -1)
        return closed(self, attention_mask=mask, position_ids=position_ids, **more)

    monkeypatch.setattr(type(model), "forward", all_open)
    with pytest.raises(AssertionError, match=LEAK):
        assert_no_future_leak(model, IDS)


def test_a_window_is_no_leak_of_the_future() -> None:
    assert_no_future_leak(hugging_face("MistralForCausalLM", sliding_window=3), IDS)


def test_only_later_tokens_leak_the_future() -> None:
    sees_padding = dataclasses.replace(subject("padding"), keep=KEEP.flip(1))
    assert verdicts(sees_padding)["gradient-reach"] == "fault"
    assert_no_future_leak(sees_padding)


def test_a_subject_is_judged_for_the_future_whatever_it_is_meant_to_see() -> None:
    with pytest.raises(AssertionError, match=r"future-token \(B1\): .*gradient-reach \(B5\): "):
        assert_no_future_leak(subject(causal=False))


class Translator(nn.Module):
    """An encoder-decoder model that answers with what it is given."""

    config = SimpleNamespace(is_encoder_decoder=True)

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, D)

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def get_encoder(self) -> Any:
        return self

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor) -> Any:
        return SimpleNamespace(last_hidden_state=inputs_embeds)


def test_the_target_is_where_the_ids_are() -> None:
    ids = IDS.to("meta")
    for one in from_hugging_face(Translator().to("meta"), ids, ids > 0).values():
        assert one.outputs_real.device == one.keep.device == ids.device


class OfIds(nn.Module):
    """A model of token ids that builds its padding mask from them."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.small = Small(fault)

    def forward(self, ids: Tensor) -> Tensor:
        return self.small(self.small.embedding(ids), ids != 0)


def _without_keep(model: nn.Module, ids: Tensor, keep: Tensor) -> Tensor:
    return model(ids)


def test_a_module_of_ids_is_examined_through_its_embedding() -> None:
    ids = torch.randint(1, 50, (2, T))
    for fault, expected in (("", []), ("future", ["future-token", "gradient-reach"])):
        model = OfIds(fault).eval()
        one = from_ids(partial(_without_keep, model), model.small.embedding, ids, KEEP, True)
        assert faults(examine(one)) == expected
        assert not model.small.embedding._forward_hooks


def test_the_assertions_fail_where_they_should_and_draw_a_picture(tmp_path: Path) -> None:
    ids, page = torch.randint(1, 50, (2, T)), tmp_path / "mask.html"
    good, bad = OfIds().eval(), OfIds("future").eval()
    assert_no_future_leak(good, ids, embedding=good.small.embedding)
    assert_padding_ignored(good, ids, embedding=good.small.embedding)
    assert_batch_invariant(good, ids, embedding=good.small.embedding)
    with pytest.raises(AssertionError, match=r"future-token \(B1\): .*mask\.html"):
        assert_no_future_leak(bad, ids, embedding=bad.small.embedding, picture=page)
    assert "#c0392b" in page.read_text()
    with pytest.raises(AssertionError, match="batch-neighbour"):
        assert_batch_invariant(subject("neighbour"))
    with pytest.raises(AssertionError, match="padding-content"):
        assert_padding_ignored(subject("padding", causal=False))


def test_the_assertions_say_what_they_need() -> None:
    with pytest.raises(TypeError, match="embedding"):
        assert_no_future_leak(nn.Linear(2, 2), torch.zeros(2, 3, dtype=torch.long))
    with pytest.raises(TypeError, match="two samples"):
        assert_no_future_leak(nn.Linear(2, 2))


class Positioned(nn.Module):
    """Token ids in, states out; absolute positions from a table that ends at T, as in a GPT or a BERT."""

    def __init__(self, causal: bool, masked: bool, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.positions = nn.Embedding(50, D), nn.Embedding(T, D)
        layer = nn.TransformerEncoderLayer(D, 2, 32, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.causal, self.masked = causal, masked

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.positions.weight[torch.arange(ids.shape[1])]
        future = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1) if self.causal else None
        return self.encoder(x, mask=future, src_key_padding_mask=ids == 0 if self.masked else None)


@pytest.mark.parametrize(("causal", "masked"), [(False, True), (True, True), (True, False)])
def test_absolute_positions_are_padded_where_keep_is(causal: bool, masked: bool) -> None:
    model = Positioned(causal, masked).eval()
    assert_padding_ignored(model, IDS, embedding=model.embedding)
    with pytest.raises(AssertionError, match=r"padding-amount \(B3\): .*, padded at the left\."):
        assert_padding_ignored(model, IDS, embedding=model.embedding, keep=KEEP.flip(1))


def test_the_message_names_the_end_that_was_padded() -> None:
    model = Positioned(causal=False, masked=False).eval()
    with pytest.raises(AssertionError, match=r"\(B2\): .*, padded at the right; .* \(B3\): .*, padded at the right\."):
        assert_padding_ignored(model, IDS, embedding=model.embedding)
    outcome = examine(subject(padding_sides=SIDES), codes=["padding-amount"])[0]
    assert outcome.reason.endswith(", padded at the left and the right")


def test_without_positions_both_ends_may_be_padded() -> None:
    model = OfIds().eval()
    for keep in (KEEP, KEEP.flip(1)):
        assert_padding_ignored(model, IDS, embedding=model.small.embedding, keep=keep)


ASSERTIONS = [assert_no_future_leak, assert_padding_ignored, assert_batch_invariant]


@pytest.mark.parametrize("check", ASSERTIONS)
def test_dropout_in_training_is_not_taken_for_a_leak(check: Any) -> None:
    model = Positioned(causal=True, masked=True, dropout=0.1).train()
    with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
        check(model, IDS, embedding=model.embedding)
    check(model.eval(), IDS, embedding=model.embedding)


@pytest.mark.parametrize("check", ASSERTIONS)
def test_outputs_that_are_not_of_tokens_are_refused(check: Any) -> None:
    model = Positioned(causal=True, masked=True).eval()

    def given(outputs: Any) -> dict[str, Any]:
        return {"embedding": model.embedding, "call": lambda ids, keep: outputs(model(ids))}

    with pytest.raises(TypeError, match=r"returned a tuple, not a tensor .* call="):
        check(model, IDS, **given(lambda states: (states, None)))
    for size in (5, T):
        with pytest.raises(
            ValueError, match=rf"outputs have the shape \(2, {size}\), but .* \(B, T, D\), here \(2, 7, D\)"
        ):
            check(model, IDS, **given(lambda states, size=size: states.mean(1)[:, :size]))
    check(model, IDS, **given(lambda states: states))


def test_a_hugging_face_model_without_states_is_refused() -> None:
    transformers = pytest.importorskip("transformers")
    config = hugging_face("BertModel").config
    with pytest.raises(TypeError, match="returned a QuestionAnsweringModelOutput"):
        assert_padding_ignored(transformers.BertForQuestionAnswering(config).eval(), IDS)
    with pytest.raises(ValueError, match=r"outputs have the shape \(2, 2\)"):
        assert_padding_ignored(transformers.BertForSequenceClassification(config).eval(), IDS)
    assert_padding_ignored(transformers.BertModel(config).eval(), IDS)


def test_an_embedding_that_is_not_used_does_not_pass() -> None:
    model = Positioned(causal=False, masked=False).eval()
    with pytest.raises(ValueError, match="does not call the module given as embedding"):
        assert_padding_ignored(model, IDS, embedding=nn.Embedding(50, D))


@pytest.mark.parametrize("keep", [KEEP[:, :3], KEEP.float(), KEEP & False])
def test_a_keep_that_is_none_is_refused(keep: Tensor) -> None:
    model = OfIds().eval()
    with pytest.raises(ValueError, match=r"keep must be booleans \(2, 7\)"):
        assert_padding_ignored(model, IDS, embedding=model.small.embedding, keep=keep)
