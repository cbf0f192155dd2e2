"""Whisper from a folder: a sound file in the place of a sentence, and the seconds at which its words were spoken."""

from __future__ import annotations

import io
import wave
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoFeatureExtractor, PreTrainedTokenizerBase, WhisperForConditionalGeneration

from ..analysis.token_times import FRAME_SECONDS, MEDIAN_WIDTH, compute_token_times
from ..capture.attention import capture_attention
from ..language import say, to_say
from ..runnable_model import LocalError
from ..text.words import mark_special_tokens
from ..trace import AttentionTrace
from .folder import convert_failure_to_local_error
from .media import MediaModel, MediaReading
from .tokenizer import FolderTokenizer

DECODER_PATHS = ("model.decoder.*",)
"""What is recorded: the maps of the encoder are of 1,500 positions a side and layer."""
TIMES_SETTING = "token seconds"
"""Among the settings of a trace: the second at which the token of each row begins."""
SAMPLE_TYPES: dict[int, type[np.integer[Any]]] = {1: np.uint8, 2: np.int16, 4: np.int32}
"""How a WAV file holds a sample, by its bytes."""
UNREADABLE_SOUND_ERRORS = (OSError, EOFError, wave.Error, KeyError, ValueError)
"""What is raised for a file that is no sound."""


class TooLongError(Exception):
    """A sound that lasts longer than the model hears."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(frozen=True, eq=False)
class SpeechModel(MediaModel):
    """Whisper: its trace is that of what it wrote."""

    extractor: Any = None
    names: FolderTokenizer | None = None
    medium = "sound"
    suffixes = (".wav",)
    unreadable_errors = UNREADABLE_SOUND_ERRORS

    @torch.no_grad()
    def read(self, name: str, data: bytes | None = None) -> MediaReading:
        """As :meth:`MediaModel.read`, of the decoder while it writes down what it hears.

        Rows are the tokens written, words with the second at which each begins. Columns of the cross-attention are the
        seconds of the sound; the last is the silence that fills it up to the model's length.
        """
        sound = self.load_input(name, data)
        given = self.extractor(sound, sampling_rate=self.extractor.sampling_rate, return_tensors="pt")
        features = given.input_features.to(self.model.device, self.model.dtype)
        model: Any = self.model
        ids = model.generate(features, num_beams=1, do_sample=False, return_dict_in_generate=True)["sequences"]
        with capture_attention(self.model, modules=DECODER_PATHS) as capture:
            self.model(input_features=features, decoder_input_ids=ids[:, :-1])
        frames = max(1, -(-len(sound) // (2 * self.extractor.hop_length)))
        return MediaReading(self._name_rows_and_seconds(capture.sample(0), ids[0].tolist(), frames))

    def decode_file(self, file: io.BytesIO) -> np.ndarray:
        return read_sound(file, self.extractor.sampling_rate, self.extractor.n_samples)

    def load_input(self, name: str, data: bytes | None = None) -> np.ndarray:
        """As :meth:`MediaModel.load_input`, the samples (N,). Raises LocalError too for a sound that lasts too long."""
        try:
            sound: np.ndarray = super().load_input(name, data)
        except TooLongError as error:
            raise LocalError(
                say(
                    "{file} lasts {seconds:.0f} seconds; the model hears {most:.0f} at most.",
                    file=name.strip(),
                    seconds=error.seconds,
                    most=self.extractor.n_samples / self.extractor.sampling_rate,
                )
            ) from error
        return sound

    def _name_rows_and_seconds(self, trace: AttentionTrace, ids: list[int], frames: int) -> AttentionTrace:
        """The trace with the columns behind the sound summed into one, and its rows and columns named."""
        assert self.names is not None
        cross, own = trace.cross, trace.decoder
        assert cross is not None
        assert own is not None
        tokens = [self.names.token(one) for one in ids]
        begin = count_prompt_tokens(tokens, self.names.special_tokens)
        times = [0.0] * len(tokens)
        if len(tokens) - 1 > begin:
            heard = cross.weights[:, :, begin:, :frames]
            found = compute_token_times(heard, self._list_heads(), width=self._median_width)
            times[begin:] = [*map(float, found), float(found[-1])]  # the last is not fed in
        spoken = [
            f" {times[at]:.2f} s {one.strip()}" if at == begin or (at > begin and one.startswith(" ")) else one
            for at, one in enumerate(tokens)
        ]
        whole = cross.weights
        heard = whole[..., :frames]
        rest = whole[..., frames:].sum(-1, keepdims=True)
        columns = [f"{FRAME_SECONDS * at:.2f} s" for at in range(frames)]
        if frames < whole.shape[-1]:
            heard, columns = np.concatenate([heard, rest], -1), [*columns, say("silence behind it")]
        cross = replace(
            cross,
            weights=heard,
            mask=np.ones(heard.shape[2:], bool),
            key_tokens=tuple(columns),
            query_tokens=tuple(tokens[:-1]),
            predicted_tokens=tuple(spoken[1:]),
            layer_masks=None,
            passed_masks=None,
        )
        own = replace(
            own,
            query_tokens=tuple(tokens[:-1]),
            key_tokens=tuple(tokens[:-1]),
            predicted_tokens=tuple(spoken[1:]),
        )
        settings = {**trace.settings, TIMES_SETTING: times[1:]}
        return mark_special_tokens(replace(trace, cross=cross, decoder=own, settings=settings), self.special_tokens)

    def _list_heads(self) -> list[tuple[int, int]]:
        """The heads that its folder says follow the sound; where it says none, all of the upper half of the layers."""
        config: Any = self.model.config
        named = getattr(self.model.generation_config, "alignment_heads", None)
        if named:
            return [(int(layer), int(head)) for layer, head in named]
        layers = range(config.decoder_layers // 2, config.decoder_layers)
        return [(layer, head) for layer in layers for head in range(config.decoder_attention_heads)]

    @property
    def _median_width(self) -> int:
        return int(getattr(self.model.config, "median_filter_width", MEDIAN_WIDTH))


def make_speech_model(
    folder: Path, model: WhisperForConditionalGeneration, tokenizer: PreTrainedTokenizerBase
) -> SpeechModel:
    """Return what runs a loaded Whisper. Raises LocalError where the folder does not say how sound is read."""
    message = to_say("{folder}: transformers {version} finds no preprocessor_config.json that says how sound is read.")
    with convert_failure_to_local_error(folder, message):
        extractor = AutoFeatureExtractor.from_pretrained(folder, local_files_only=True)
    names = FolderTokenizer(tokenizer, model.config.vocab_size, continues=False)
    return SpeechModel(
        folder.name, model, lambda _: [], names.special_tokens, folder=folder, extractor=extractor, names=names
    )


def count_prompt_tokens(tokens: list[str], special: frozenset[str]) -> int:
    """Return how many special tokens a transcript begins with: start, language, task."""
    return next((at for at, one in enumerate(tokens) if one not in special), len(tokens))


def read_sound(file: io.BytesIO, rate: int, most: int) -> np.ndarray:
    """Return the samples of a WAV file (N,) from -1 to 1, at so many a second, its channels averaged.

    Raises one of UNREADABLE_SOUND_ERRORS for what is no WAV file of whole numbers, TooLongError for more than `most`.
    """
    with wave.open(file) as sound_file:
        kind = SAMPLE_TYPES[sound_file.getsampwidth()]
        data = np.frombuffer(sound_file.readframes(sound_file.getnframes()), kind).reshape(
            -1, sound_file.getnchannels()
        )
        own = sound_file.getframerate()
    if not own:
        raise ValueError("no samples a second")
    count = len(data) * rate // own  # a header can call a few samples a second each: checked before they are made
    if count > most:
        raise TooLongError(count / rate)
    largest = -float(np.iinfo(kind).min) or 128.0  # eight bits count from 0, with silence at 128
    values = (data.astype(np.float32) - (128 if kind is np.uint8 else 0)) / largest
    sound = values.mean(1)
    if own == rate or not len(sound):
        return sound
    places = np.arange(count) * (own / rate)
    return np.interp(places, np.arange(len(sound)), sound).astype(np.float32)
