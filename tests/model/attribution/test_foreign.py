"""A model that nobody here wrote: what can be computed is, and one line says what cannot."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attenscope.attribution.any_model import ANY_MODEL_METHODS, NOT_COMPUTED_MESSAGE, attribute_any_model
from attenscope.attribution.methods import attribute_target
from attenscope.attribution.target import AttributionError, make_piece_target
from attenscope.evaluation.attribution import measure_local_model_deletion_curves
from attenscope.runnable_model import LocalModel
from attenscope.text.words import TokenNames
from attenscope.translate import Translator


class Stranger(nn.Module):
    """nn.Transformer with embeddings of its own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.source, self.target = nn.Embedding(40, 16), nn.Embedding(40, 16)
        self.body = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        self.head = nn.Linear(16, 40)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(y.shape[1])
        return self.head(self.body(self.source(x), self.target(y), tgt_mask=mask, tgt_is_causal=True))


def local(model: nn.Module) -> LocalModel:
    def run(text: str) -> TokenNames:
        x, y = torch.tensor([[ord(sign) % 40 for sign in text]]), torch.tensor([[1, 9, 4]])
        model(x, y)
        return {"source": list(text), "target": ["<s>", "a", "b"], "predicted": ["a", "b", "c"]}

    return LocalModel("stranger", model.eval(), run)


def test_removal_and_gradients_by_hand() -> None:
    model = Stranger().eval()
    found, missing = attribute_any_model(local(model), "hello", 2, "all")
    assert [one.method for one in found] == list(ANY_MODEL_METHODS)
    assert missing == NOT_COMPUTED_MESSAGE
    x, y = torch.tensor([[ord(sign) % 40 for sign in "hello"]]), torch.tensor([[1, 9, 4]])
    with torch.no_grad():
        row = model(x, y)[0, 1].double()
    value = row.log_softmax(-1)[4]  # which is fed next under the name of what is predicted here
    for one in found:
        assert one.target.word == "b"
        assert one.target_value == pytest.approx(float(value), abs=1e-5)
        assert one.source.shape == (5,)
        assert one.prefix.shape == (0 if one.method == "attention" else 2,)
    zero = model.source(x).detach().clone()
    zero[0, 2] = 0
    hook = model.source.register_forward_hook(lambda *_: zero)
    with torch.no_grad():
        without = model(x, y)[0, 1].double().log_softmax(-1)[4]
    hook.remove()
    assert found[0].source[2] == pytest.approx(float(value - without), abs=1e-5)
    assert not any(module._forward_hooks for module in model.modules())


def test_a_hugging_face_model_that_generates() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 50, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 64}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    ids = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0, "forced_eos_token_id": 2}
    torch.manual_seed(0)
    model = transformers.MarianMTModel(transformers.MarianConfig(**sizes, **heads, **ids)).eval()

    def run(text: str) -> TokenNames:
        source = torch.tensor([[3 + ord(sign) % 40 for sign in text] + [2]])
        names = list(map(str, model.generate(source, max_new_tokens=5, min_new_tokens=5, do_sample=False)[0].tolist()))
        return {"source": [*text, "</s>"], "target": names[:-1], "predicted": names[1:]}

    found, _ = attribute_any_model(LocalModel("marian", model, run), "hello", 3, "all")
    for one in found:
        assert np.isfinite(one.scores).all()
        assert len(one.source) == 6
        assert str(one.target.token_ids[0]) == one.target.word


def test_what_is_left_as_pieces_go() -> None:
    model = local(Stranger())
    found, _ = attribute_any_model(model, "hello", 2, "all")
    every = {one.method: one for one in found}
    curves = measure_local_model_deletion_curves(model, "hello", 2, every, random_orders=4, seed=1)
    assert curves.random.shape == (4, 6)
    for name, values in curves.methods.items():
        order = np.argsort(-every[name].source, kind="stable")
        assert values[0] == pytest.approx(every[name].target_value)
        assert values[1] == pytest.approx(values[0] - every["leave-one-out"].source[order[0]], abs=1e-6)
        assert values[5] == pytest.approx(curves.random[0, 5])
    assert np.ptp(curves.random[:, [0, 5]], axis=0).tolist() == [0, 0]
    assert curves.remaining_share(curves.random)[:, 0].tolist() == [1, 1, 1, 1]


class Mixed(Stranger):
    """The same with a convolution over the source beside attention."""

    def __init__(self) -> None:
        super().__init__()
        self.beside = nn.Conv1d(16, 16, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(y.shape[1])
        return self.head(self.body(self.beside(self.source(x).mT).mT, self.target(y), tgt_mask=mask))


def test_what_cannot_be_followed_is_said_and_the_rest_computed() -> None:
    found, missing = attribute_any_model(local(Mixed()), "hello", 2, "all")
    assert [one.method for one in found] == [one for one in ANY_MODEL_METHODS if one not in ("attention-norm", "alti")]
    assert missing.startswith(NOT_COMPUTED_MESSAGE)
    assert missing.endswith(
        "What its attention passes on cannot be followed: positions are mixed beside its attention."
    )
    with pytest.raises(AttributionError, match="positions are mixed beside its attention"):
        attribute_any_model(local(Mixed()), "hello", 2, "alti")


def test_what_it_cannot_have() -> None:
    model = local(Stranger())
    with pytest.raises(AttributionError, match="its heads are not switched off here"):
        attribute_any_model(model, "hello", 1, "heads")
    with pytest.raises(AttributionError, match="There is no piece 9"):
        attribute_any_model(model, "hello", 9, "all")
    with pytest.raises(AttributionError, match="no source and target"):
        attribute_any_model(LocalModel("plain", nn.Linear(2, 2), lambda text: list(text)), "hello", 1, "all")


@pytest.mark.parametrize("method", ["gradient-x-input", "attention", "rollout", "attention-norm", "alti"])
def test_of_our_own_model_the_scores_are_the_same(toy_translator: Translator, method: str) -> None:
    """The embedding is scaled after the lookup here, so gradient times input is the same number."""
    translation = toy_translator.translate("a cat finds the tree.", capture=False)
    target = make_piece_target(toy_translator, translation, 2)
    source, inputs = torch.tensor([target.source_ids]), torch.tensor([target.input_ids])

    def run(text: str) -> TokenNames:
        toy_translator.model(source, inputs)
        fed = target.prefix_tokens
        return {"source": target.source_tokens, "target": fed, "predicted": translation.target_tokens[: len(fed)]}

    (found,), _ = attribute_any_model(LocalModel("ours", toy_translator.model, run), "", 3, method)
    expected = attribute_target(toy_translator, target, method)
    np.testing.assert_allclose(found.source, expected.source, atol=1e-4)
    np.testing.assert_allclose(found.prefix, expected.prefix, atol=1e-4)
