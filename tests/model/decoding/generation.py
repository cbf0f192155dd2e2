"""Our Transformer behind Hugging Face's `generate`: the independent reference for every decoding strategy."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from attenscope.network.attention import make_padding_mask
from attenscope.network.config import BOS_ID, EOS_ID, PAD_ID
from attenscope.network.transformer import Transformer


class _Config(PretrainedConfig):
    model_type = "adapted"


class _Encoder(nn.Module):
    main_input_name = "input_ids"

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, **_: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=self.model.encode(input_ids))


class Adapted(PreTrainedModel, GenerationMixin):
    """What `generate` needs, without a cache: a full forward pass a step."""

    config_class = _Config
    main_input_name = "input_ids"

    def __init__(self, model: Transformer) -> None:
        config = _Config(is_encoder_decoder=True)
        config.vocab_size = model.config.target_vocab_size
        super().__init__(config)
        self.model, self.encoder = model, _Encoder(model)
        self.generation_config = GenerationConfig(
            pad_token_id=PAD_ID, eos_token_id=EOS_ID, decoder_start_token_id=BOS_ID, use_cache=False
        )

    def get_encoder(self, *_: Any, **__: Any) -> nn.Module:
        return self.encoder

    def prepare_inputs_for_generation(
        self, decoder_input_ids: Tensor, encoder_outputs: Any = None, attention_mask: Tensor | None = None, **_: Any
    ) -> dict[str, Any]:
        return {
            "decoder_input_ids": decoder_input_ids,
            "encoder_outputs": encoder_outputs,
            "attention_mask": attention_mask,
        }

    def forward(
        self, decoder_input_ids: Tensor, encoder_outputs: Any, attention_mask: Tensor, **_: Any
    ) -> Seq2SeqLMOutput:
        mask = attention_mask.bool()[:, None, None, :]
        # A finished sentence is padded by `generate`, but its rows are thrown away; causality alone is enough.
        length = decoder_input_ids.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
        states = self.model.decode(decoder_input_ids, encoder_outputs.last_hidden_state, mask, causal)
        return Seq2SeqLMOutput(logits=self.model.generator(states))


def generate(model: Transformer, source: Tensor, **settings: Any) -> Any:
    """`generate` on source (B, S) ids, PAD after the end, with scores."""
    adapted: Any = Adapted(model)
    return adapted.generate(
        input_ids=source,
        attention_mask=make_padding_mask(source, PAD_ID)[:, 0, 0].long(),
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )
