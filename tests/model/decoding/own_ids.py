"""What decoding asks of any model besides its numbers, as a model of this project answers it; for fakes."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from attenscope.network.attention import make_padding_mask
from attenscope.network.config import BOS_ID, EOS_ID, PAD_ID
from attenscope.network.layers import DecoderCache


class OwnIds:
    config: Any
    start_id, end_ids = BOS_ID, (EOS_ID,)

    def room(self, source_tokens: int) -> int:
        return int(self.config.max_length) - 1

    def usual_limit(self, source_tokens: int) -> int:
        return 2 * source_tokens + 20

    def source_mask(self, source: Tensor) -> Tensor:
        return make_padding_mask(source, PAD_ID)

    def new_cache(self) -> DecoderCache:
        return DecoderCache(1)
