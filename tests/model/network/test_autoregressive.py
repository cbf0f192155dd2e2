"""Token ids as a model is fed them, by hand."""

from __future__ import annotations

import torch

from attenscope.network.abstract_model import pad_ids, shift_right
from attenscope.network.config import BOS_ID, PAD_ID


def test_padded() -> None:
    assert torch.equal(pad_ids([[5], [6, 7]]), torch.tensor([[5, PAD_ID], [6, 7]]))


def test_a_shifted_target_begins_with_the_start_token_and_loses_its_last() -> None:
    target = torch.tensor([[5, 6, 3], [7, 3, PAD_ID]])
    assert torch.equal(shift_right(target), torch.tensor([[BOS_ID, 5, 6], [BOS_ID, 7, 3]]))
    assert torch.equal(shift_right(target[0]), torch.tensor([BOS_ID, 5, 6]))
    assert shift_right(target[:, :1]).tolist() == [[BOS_ID], [BOS_ID]]
