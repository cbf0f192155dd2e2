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

from ..decoding.greedy import Constraints
from ..devices import choose_device
from ..language import say
from ..network.autoregressive import Side
from ..runnable_model import LocalError, LocalModel, RunnableModel
from .attention import ATTENTION_NAME, ProbeError, probe_attention, register_attention
from .folder import (
    CONTINUATION_LACKS,
    NO_POSITIONS_MESSAGE,
    NO_STREAMS_LACKS,
    TRANSLATION_LACKS,
    describe_unapplied_settings,
)
from .networks import DecoderNetwork, EncoderDecoderNetwork, FolderNetwork, has_residual_streams_only
from .positions import find_added_positions
from .tokenizer import FolderTokenizer

OFFLINE_OPTIONS: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
POSITION_COUNT_NAMES = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
"""What configurations call the positions that a model has."""
MAX_POSITIONS = 512
"""Positions of a model without a table of them, such as T5; of one with more, all maps would take gigabytes."""
UNUSED_WEIGHTS = re.compile(r"\bpooler\b")
"""Weights that no attention depends on, and that a model trained without them has not."""
PROBE_SENTENCE = "This sentence is read once."


class FolderModel(RunnableModel):
    """A model of transformers that writes: it lacks what needs to know more of its inside than attention."""

    model: FolderNetwork
    generation: GenerationConfig | None = None
    """What its folder says of writing."""

    @property
    def notes(self) -> Sequence[str]:
        return describe_unapplied_settings(self.generation)

    @property
    def empty_rows(self) -> str:
        return say("zeros are put there, where eager attention of transformers would weigh all keys alike")


def load_folder_model(
    folder: Path, config: Mapping[str, Any], languages: Mapping[str, str]
) -> RunnableModel | LocalModel:
    """Return what runs the folder's model; `config` is what its configuration file says. Raises LocalError and others.

    Computed in float32, on the GPU when there is one.
    """
    facts = AutoConfig.from_pretrained(folder, **OFFLINE_OPTIONS)
    tokenizer = AutoTokenizer.from_pretrained(folder, **OFFLINE_OPTIONS)
    architectures = " ".join(config.get("architectures") or ())
    if facts.is_encoder_decoder:
        return _load_text_generator(folder, AutoModelForSeq2SeqLM, tokenizer, facts, languages)
    if "CausalLM" in architectures or "LMHead" in architectures or getattr(facts, "is_decoder", False):
        return _load_text_generator(folder, AutoModelForCausalLM, tokenizer, facts, languages)
    return _load_encoder_only(folder, tokenizer)


def _load_pretrained_model(folder: Path, kind: Any, attention: str) -> PreTrainedModel:
    """The model in eval mode; weights that are missing or left over would make another model of it."""
    model, report = kind.from_pretrained(
        folder,
        **OFFLINE_OPTIONS,
        use_safetensors=True,
        dtype=torch.float32,
        attn_implementation=attention,
        output_loading_info=True,
    )
    missing = [name for name in sorted(report["missing_keys"]) if not UNUSED_WEIGHTS.search(name)]
    if missing:
        raise LocalError(
            say(
                "{folder} lacks {count} of the model's tensors, {first} first.",
                folder=folder.name,
                count=len(missing),
                first=missing[0],
            )
        )
    return model.to(choose_device()).eval().requires_grad_(False)


def _load_encoder_only(folder: Path, tokenizer: PreTrainedTokenizerBase) -> LocalModel:
    """An encoder: it reads, and its attention is seen as that of any model."""
    model = _load_pretrained_model(folder, AutoModel, "eager")
    names = FolderTokenizer(tokenizer, model.config.vocab_size, continues=False)
    most = _count_positions(model.config)

    def run_text(text: str) -> dict[str, list[str]]:
        ids = names.encode(text).ids
        if len(ids) > most:
            raise LocalError(
                say("this text has {count:,} tokens, and the model reads {most} at most", count=len(ids), most=most)
            )
        model(input_ids=torch.tensor([ids], device=model.device))
        return {"source": [names.token(one) for one in ids]}

    return LocalModel(folder.name, model, run_text)


def _load_text_generator(
    folder: Path,
    kind: Any,
    tokenizer: PreTrainedTokenizerBase,
    facts: PreTrainedConfig,
    languages: Mapping[str, str],
) -> RunnableModel:
    register_attention()
    model = _load_pretrained_model(folder, kind, ATTENTION_NAME)
    generation = model.generation_config or GenerationConfig()
    two_sided = bool(facts.is_encoder_decoder)
    forced = (
        _make_forced_constraints(folder, tokenizer, generation, languages)
        if two_sided
        else _make_forbidden_constraints(generation)
    )
    network = _make_network(model, tokenizer, generation)
    names = FolderTokenizer(tokenizer, model.get_output_embeddings().weight.shape[0], continues=not two_sided)
    ids = torch.tensor([names.encode(PROBE_SENTENCE).ids], device=model.device)
    written = [one for one in range(len(names)) if one != model.config.pad_token_id]  # whose embedding may be zero
    target = torch.tensor([(written * (ids.shape[1] + 2))[: ids.shape[1] + 2]], device=model.device)
    try:
        probe_attention(model, lambda: network(ids, target), ids.shape[1])
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
        card=_make_card(model, tokenizer, two_sided=two_sided),
        weights_hash=_hash_weights(folder),
        forced=forced,
    )
    lengths: dict[Side, int] = {"target": target.shape[1] + (0 if two_sided else ids.shape[1] - 1)}
    network.added = find_added_positions(
        network, lambda: network(ids, target), lengths | ({"source": ids.shape[1]} if two_sided else {})
    )
    lacks = dict(TRANSLATION_LACKS if two_sided else CONTINUATION_LACKS)
    if len(network.added) != 1 + two_sided:
        lacks["positions"] = NO_POSITIONS_MESSAGE
    if not has_residual_streams_only(network, ids, target):
        lacks |= NO_STREAMS_LACKS
    found.lacks = lacks
    found.generation, found.folder = generation, folder
    return found


def _make_network(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig
) -> FolderNetwork:
    ends = generation.eos_token_id if generation.eos_token_id is not None else tokenizer.eos_token_id
    end_ids = tuple(ends) if isinstance(ends, list | tuple) else (ends,)
    if None in end_ids:
        raise LocalError(say("it does not say which token ends a text (eos_token_id)"))
    positions = _count_positions(model.config)
    if not model.config.is_encoder_decoder:
        return DecoderNetwork(model, end_ids[0], end_ids, positions)
    start = generation.decoder_start_token_id
    start = getattr(model.config, "decoder_start_token_id", None) if start is None else start
    if start is None:
        raise LocalError(say("it does not say which token a target begins with (decoder_start_token_id)"))
    return EncoderDecoderNetwork(model, start, end_ids, positions)


def _count_positions(config: PreTrainedConfig) -> int:
    known = [getattr(config, name, None) for name in POSITION_COUNT_NAMES]
    offset = 2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0  # which begin to count at 2
    return min([MAX_POSITIONS, *(one - offset for one in known if isinstance(one, int) and one > offset)])


def _make_forced_constraints(
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
    return Constraints(begin, _make_forbidden_constraints(generation).forbidden, uncounted=len(begin))


def _make_forbidden_constraints(generation: GenerationConfig) -> Constraints:
    """The sequences that the folder's settings forbid."""
    banned = [tuple(ids) for ids in generation.bad_words_ids or ()]
    return Constraints(forbidden=(*banned, *((token,) for token in generation.suppress_tokens or ())))


def _make_card(model: nn.Module, tokenizer: PreTrainedTokenizerBase, *, two_sided: bool) -> dict[str, str]:
    """What is known of the model: its class, and its languages where its tokenizer says them."""
    card = {"title": f"{type(model).__name__} of a folder"}
    if two_sided:
        for side, names in {"source": ("source_lang", "src_lang"), "target": ("target_lang", "tgt_lang")}.items():
            code = next((str(one) for name in names if (one := getattr(tokenizer, name, None))), "")
            card[f"{side}_language"] = code.partition("_")[0]
    else:
        card["examples"] = "The capital of France is | Once upon a time there was a | She opened the door and"
    return card


def _hash_weights(folder: Path) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the weights, of all files in their order."""
    found = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:12]
