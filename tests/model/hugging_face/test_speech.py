"""Whisper from a folder: the times of its words against transformers' own, and against an alignment planted by hand."""

from __future__ import annotations

import io
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.analysis.token_times import compute_token_times
from attenscope.hugging_face.speech import TIMES_SETTING, SpeechModel, read_sound
from attenscope.runnable_model import LocalError
from attenscope.user_model import load_user_model

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def model(folder: Callable[[str], Path]) -> SpeechModel:
    found = load_user_model(f"hf:{folder('whisper')}")
    assert isinstance(found, SpeechModel)
    return found


def test_times_are_those_of_transformers(model: SpeechModel) -> None:
    trace = model.trace("speech.wav")
    sound = model.load_input("speech.wav")
    features = model.extractor(sound, sampling_rate=16_000, return_tensors="pt").input_features
    own: Any = model.model
    ids = own.generate(features, return_dict_in_generate=True)["sequences"]
    with torch.no_grad():
        cross = own(input_features=features, decoder_input_ids=ids[:, :-1], output_attentions=True).cross_attentions
    begin = 2  # the start and what says that no times are written
    made = Generated(cross_attentions=[cross], sequences=ids)
    heads = [[0, 1], [1, 2]]
    expected = own._extract_token_timestamps(made, heads, num_frames=200, num_input_ids=begin)[0].tolist()
    assert len(set(expected)) > 4
    assert trace.cross is not None
    assert model.names is not None
    assert trace.cross.query_tokens == tuple(model.names.token(one) for one in ids[0, :-1].tolist())
    assert np.abs(np.array(trace.settings[TIMES_SETTING]) - expected[1:]).max() <= 0.02
    for token, seconds in zip(trace.cross.predicted_tokens, trace.settings[TIMES_SETTING], strict=True):
        assert not token.startswith(" ") or token.startswith(f" {seconds:.2f} s ")
    assert trace.cross.predicted_tokens[begin - 1].startswith(" 0.00 s ")


class Generated(dict[str, Any]):
    """What transformers returns of a generation: read by names of attributes, and asked for what it holds."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def test_columns_are_seconds_and_the_silence_behind_them(model: SpeechModel) -> None:
    trace = model.trace("speech.wav")
    assert trace.cross is not None
    assert trace.encoder is None
    assert trace.cross.key_tokens[:2] == ("0.00 s", "0.02 s")
    assert trace.cross.key_tokens[-2:] == ("1.98 s", "silence behind it")
    assert np.abs(trace.cross.weights.sum(-1) - 1).max() < 1e-5
    sound = model.load_input("speech.wav")
    features = model.extractor(sound, sampling_rate=16_000, return_tensors="pt").input_features
    ids = torch.tensor([[1, 4, 33, 155]])
    own: Any = model.model
    with torch.no_grad():
        alone = own(input_features=features, decoder_input_ids=ids, output_attentions=True).cross_attentions
    assert alone[0].shape[-1] == 150
    row = alone[1][0, 2, 0]
    assert np.abs(trace.cross.weights[1, 2, 0, :100] - row[:100].numpy()).max() < 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_alignment_is_found(seed: int) -> None:
    chosen = np.random.default_rng(seed)
    begins = np.sort(chosen.choice(np.arange(10, 240, 12), 8, replace=False))
    begins[0] = 0
    ends = np.append(begins[1:], 250)
    weights = chosen.random((2, 3, 8, 250)) * 1e-3
    for token, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        weights[1, 2, token, begin:end] += 1 / (end - begin)
        weights[0, 1, token, begin:end] += 1 / (end - begin)
    weights /= weights.sum(-1, keepdims=True)
    found = compute_token_times(weights, [(1, 2), (0, 1)])
    assert np.abs(found - begins * 0.02).max() <= 0.02


def encode_sound(values: np.ndarray, rate: int) -> bytes:
    """A WAV file of values of 16 bits, of both channels alike."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setparams((2, 2, rate or 1, 0, "NONE", ""))
        file.writeframes(np.repeat(values, 2).tobytes())
    data = written.getvalue()
    return data if rate else data[:24] + bytes(8) + data[32:]  # a rate of 0 is never written by Python


def test_a_sound_is_read_at_the_rate_of_the_model(model: SpeechModel) -> None:
    values = (np.sin(np.arange(800) / 40) * 20_000).astype(np.int16)
    whole = encode_sound(values, 8_000)
    sound = read_sound(io.BytesIO(whole), 16_000, 1_600)
    assert sound.shape == (1600,)
    assert np.abs(sound[::2] - values / 32_768).max() < 1e-6
    for data in (b"no sound", b"", whole[:20], encode_sound(values, 0)):
        with pytest.raises(LocalError, match=r"a\.wav cannot be read as sound"):
            model.load_input("a.wav", data)


@pytest.mark.parametrize(
    ("rate", "count", "seconds"), [(1, 200_000, "200000"), (16_000, 48_001, "3"), (8_000, 24_001, "3")]
)
def test_a_sound_that_lasts_too_long_is_refused_before_it_is_resampled(
    model: SpeechModel, monkeypatch: pytest.MonkeyPatch, rate: int, count: int, seconds: str
) -> None:
    monkeypatch.setattr(np, "interp", None)
    with pytest.raises(LocalError, match=f"a.wav lasts {seconds} seconds; the model hears 3 at most"):
        model.load_input("a.wav", encode_sound(np.zeros(count, np.int16), rate))


def test_an_uploaded_sound_is_read_as_one_of_the_folder(model: SpeechModel) -> None:
    own = model.trace("speech.wav").cross
    found = model.read("mine.wav", (model.folder / "speech.wav").read_bytes()).trace.cross
    assert own is not None
    assert found is not None
    assert np.array_equal(found.weights, own.weights)


def test_a_file_that_is_not_there_is_said(model: SpeechModel) -> None:
    for name in ("../config.json", "", "none.wav"):
        with pytest.raises(LocalError, match=r"one of the files in its folder \(speech\.wav\), or upload one"):
            model.trace(name)
