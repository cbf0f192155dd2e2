"""The weights and the tokenizer of a folder, made into a model that pages can run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ..decoding.constraints import Constraints
from ..devices import chosen_device
from ..language.say import say
from ..live.live_model import LiveModel
from ..live.local_model import LocalError, LocalModel
from ..network.autoregressive import Side
from .abilities import LACKS_OF_CONTINUATION, LACKS_OF_TRANSLATION, NO_POSITIONS, NO_STREAMS, generation_notes
from .attention import NAME, register
from .networks import DecoderNetwork, EncoderDecoderNetwork, FolderNetwork
from .positions import find_added_positions
from .probe import ProbeError, probe
from .streams import hands_on_streams_alone
from .tokenizer import FolderTokenizer

OFFLINE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
"""What configurations call the positions that a model has."""
MOST_POSITIONS = 512
"""Positions of a model without a table of them, such as T5; of one with more, all maps would take gigabytes."""
UNSEEN = re.compile(r"\bpooler\b")
"""Weights that no attention depends on, and that a model trained without them has not."""
PROBED = "This sentence is read once."


class FolderModel(LiveModel):
    """A model of transformers that writes: it lacks what needs to know more of its inside than attention."""

    model: FolderNetwork
    generation: GenerationConfig | None = None
    """What its folder says of writing."""

    @property
    def notes(self) -> Sequence[str]:
        return generation_notes(self.generation)

    @property
    def empty_rows(self) -> str:
        return say("zeros are put there, where eager attention of transformers would weigh all keys alike")


def loaded(folder: Path, config: Mapping[str, Any], languages: Mapping[str, str]) -> LiveModel | LocalModel:
    """Return what runs the folder's model; `config` is what its configuration file says. Raises LocalError and others.

    Computed in float32, on the GPU when there is one.
    """
    facts = AutoConfig.from_pretrained(folder, **OFFLINE)
    tokenizer = AutoTokenizer.from_pretrained(folder, **OFFLINE)
    architectures = " ".join(config.get("architectures") or ())
    if facts.is_encoder_decoder:
        return _writer(folder, AutoModelForSeq2SeqLM, tokenizer, facts, languages)
    if "CausalLM" in architectures or "LMHead" in architectures or getattr(facts, "is_decoder", False):
        return _writer(folder, AutoModelForCausalLM, tokenizer, facts, languages)
    return _reader(folder, tokenizer)


def _model(folder: Path, kind: Any, attention: str) -> PreTrainedModel:
    """The model in eval mode; weights that are missing or left over would make another model of it."""
    model, report = kind.from_pretrained(
        folder,
        **OFFLINE,
        use_safetensors=True,
        dtype=torch.float32,
        attn_implementation=attention,
        output_loading_info=True,
    )
    missing = [name for name in sorted(report["missing_keys"]) if not UNSEEN.search(name)]
    if missing:
        raise LocalError(
            say(
                "{folder} lacks {count} of the model's tensors, {first} first.",
                folder=folder.name,
                count=len(missing),
                first=missing[0],
            )
        )
    return model.to(chosen_device()).eval().requires_grad_(False)


def _reader(folder: Path, tokenizer: PreTrainedTokenizerBase) -> LocalModel:
    """An encoder: it reads, and its attention is seen as that of any model."""
    model = _model(folder, AutoModel, "eager")
    names = FolderTokenizer(tokenizer, model.config.vocab_size, continues=False)
    most = _positions(model.config)

    def run(text: str) -> dict[str, list[str]]:
        ids = names.encode(text).ids
        if len(ids) > most:
            raise LocalError(
                say("this text has {count:,} tokens, and the model reads {most} at most", count=len(ids), most=most)
            )
        model(input_ids=torch.tensor([ids], device=model.device))
        return {"source": [names.token(one) for one in ids]}

    return LocalModel(folder.name, model, run)


def _writer(
    folder: Path,
    kind: Any,
    tokenizer: PreTrainedTokenizerBase,
    facts: PreTrainedConfig,
    languages: Mapping[str, str],
) -> LiveModel:
    register()
    model = _model(folder, kind, NAME)
    generation = model.generation_config or GenerationConfig()
    two_sided = bool(facts.is_encoder_decoder)
    forced = _forced(folder, tokenizer, generation, languages) if two_sided else _never(generation)
    network = _network(model, tokenizer, generation)
    names = FolderTokenizer(tokenizer, model.get_output_embeddings().weight.shape[0], continues=not two_sided)
    ids = torch.tensor([names.encode(PROBED).ids], device=model.device)
    written = [one for one in range(len(names)) if one != model.config.pad_token_id]  # whose embedding may be zero
    target = torch.tensor([(written * (ids.shape[1] + 2))[: ids.shape[1] + 2]], device=model.device)
    try:
        probe(model, lambda: network(ids, target), ids.shape[1])
    except ProbeError as error:
        raise LocalError(
            say(
                "{folder} cannot be run live: {error}. Its attention can be captured from Python and opened here.",
                folder=folder.name,
                error=error,
            )
        ) from error
    found = FolderModel(
        folder.name,
        network,
        names,
        max_length=network.positions,
        card=_card(model, tokenizer, two_sided=two_sided),
        weights_hash=_hash(folder),
        forced=forced,
    )
    lengths: dict[Side, int] = {"target": target.shape[1] + (0 if two_sided else ids.shape[1] - 1)}
    network.added = find_added_positions(
        network, lambda: network(ids, target), lengths | ({"source": ids.shape[1]} if two_sided else {})
    )
    lacks = dict(LACKS_OF_TRANSLATION if two_sided else LACKS_OF_CONTINUATION)
    if len(network.added) != 1 + two_sided:
        lacks["positions"] = NO_POSITIONS
    if not hands_on_streams_alone(network, ids, target):
        lacks |= NO_STREAMS
    found.lacks = lacks
    found.generation, found.folder = generation, folder
    return found


def _network(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig) -> FolderNetwork:
    ends = generation.eos_token_id if generation.eos_token_id is not None else tokenizer.eos_token_id
    end_ids = tuple(ends) if isinstance(ends, list | tuple) else (ends,)
    if None in end_ids:
        raise LocalError(say("it does not say which token ends a text (eos_token_id)"))
    positions = _positions(model.config)
    if not model.config.is_encoder_decoder:
        return DecoderNetwork(model, end_ids[0], end_ids, positions)
    start = generation.decoder_start_token_id
    start = getattr(model.config, "decoder_start_token_id", None) if start is None else start
    if start is None:
        raise LocalError(say("it does not say which token a target begins with (decoder_start_token_id)"))
    return EncoderDecoderNetwork(model, start, end_ids, positions)


def _positions(config: PreTrainedConfig) -> int:
    known = [getattr(config, name, None) for name in POSITIONS]
    offset = 2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0  # which begin to count at 2
    return min([MOST_POSITIONS, *(one - offset for one in known if isinstance(one, int) and one > offset)])


def _forced(
    folder: Path, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig, languages: Mapping[str, str]
) -> Constraints:
    """What every target begins with: the language that is asked for, or what the folder's settings say."""
    first = generation.forced_bos_token_id
    for side, code in languages.items():
        setattr(tokenizer, f"{'src' if side == 'source' else 'tgt'}_lang", code)
    known = getattr(tokenizer, "lang_code_to_id", None) or getattr(tokenizer, "lang_token_to_id", None)
    target = languages.get("target") or getattr(tokenizer, "tgt_lang", None)
    if known and target:
        first = tokenizer.get_lang_id(target) if hasattr(tokenizer, "get_lang_id") else known[target]
    if known and first is None:
        raise LocalError(
            say(
                "{folder} writes {count} languages: say which, as in --model 'hf:{path}?source=en&target=de'.",
                folder=folder.name,
                count=len(known),
                path=folder,
            )
        )
    begin = () if first is None else (int(first),)
    return Constraints(begin, _never(generation).forbidden, uncounted=len(begin))


def _never(generation: GenerationConfig) -> Constraints:
    """The sequences that the folder's settings forbid."""
    banned = [tuple(ids) for ids in generation.bad_words_ids or ()]
    return Constraints(forbidden=(*banned, *((token,) for token in generation.suppress_tokens or ())))


def _card(model: nn.Module, tokenizer: PreTrainedTokenizerBase, *, two_sided: bool) -> dict[str, str]:
    """What is known of the model: its class, and its languages where its tokenizer says them."""
    card = {"title": f"{type(model).__name__} of a folder"}
    if two_sided:
        for side, names in {"source": ("source_lang", "src_lang"), "target": ("target_lang", "tgt_lang")}.items():
            code = next((str(one) for name in names if (one := getattr(tokenizer, name, None))), "")
            card[f"{side}_language"] = code.partition("_")[0]
    else:
        card["examples"] = "The capital of France is | Once upon a time there was a | She opened the door and"
    return card


def _hash(folder: Path) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the weights, of all files in their order."""
    found = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:12]
