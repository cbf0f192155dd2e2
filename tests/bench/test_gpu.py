"""The measurement on a GPU: nothing without one, and the whole of it runs on any device."""

from __future__ import annotations

import pytest
import torch

from bench import gpu


def test_nothing_is_measured_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.measure() == []
    assert "there is none here" in capsys.readouterr().out


@pytest.mark.slow
def test_every_line_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in (("REPETITIONS", 1), ("TRAINING_STEPS", 2), ("BATCH", 2)):
        monkeypatch.setattr(gpu, name, few)
    rows = gpu.measure(torch.device("cpu"))
    assert [row.what.split(" on cpu")[0].split(",")[0] for row in rows] == [
        "gpu: ms of an atlas's measures and costs",
        "gpu: ms of one sentence with capture",
        "gpu: ms of 96 heads switched off one by one",
        "gpu: ms of greedy",
        "gpu: ms of beam 4",
        "gpu: target tokens/s of training",
        "gpu: ms of greedy",
        "gpu: ms of beam 4",
    ]
    assert all(row.ratio > 0 for row in rows)
