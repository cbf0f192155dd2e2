"""The counts of parameters, by hand and against torch's own."""

from __future__ import annotations

import pytest

from attenscope.checkpoint.card import count_parameters_by_part, list_state_tensors
from attenscope.network.config import PRESETS
from tests import toy

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24, "max_length": 20}


def test_parts_by_hand() -> None:
    model = toy.random_model(**SIZES)
    attention, norm = 4 * (16 * 16 + 16), 2 * 16
    feed_forward = 2 * 16 * 24 + 24 + 16
    assert count_parameters_by_part(model) == {
        "embeddings": toy.VOCABULARY * 16,
        "encoder": attention + feed_forward + 2 * norm + norm,
        "decoder": 2 * attention + feed_forward + 3 * norm + norm,
        "generator": 0,  # it is the embedding
    }


@pytest.mark.parametrize("name", PRESETS)
def test_parts_add_up_to_what_torch_counts(name: str) -> None:
    from attenscope.network.config import make_preset_config
    from attenscope.network.transformer import Transformer

    sizes = {**SIZES, "vocab_size": 50, "target_vocab_size": 50}
    model = Transformer(make_preset_config(name, **sizes))
    total = sum(parameter.numel() for parameter in model.parameters())
    assert sum(count_parameters_by_part(model).values()) == total
    assert sum(one.parameters for one in list_state_tensors(model) if not one.shared_with) == total
    assert [one.name for one in list_state_tensors(model)] == list(model.state_dict())


def test_a_tied_tensor_names_the_one_it_is() -> None:
    tensors = {one.name: one for one in list_state_tensors(toy.random_model(**SIZES))}
    assert tensors["generator.weight"].shared_with == "source_embedding.table.weight"
    assert tensors["generator.weight"].shape == (toy.VOCABULARY, 16)
    apart = list_state_tensors(toy.random_model(**SIZES, shared_embedding=False, tied_generator=False))
    assert not any(one.shared_with for one in apart)
