"""The weights and the tokenizer of a folder, made into a model that pages can run where there is memory for it."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    WhisperForConditionalGeneration,
)

from ..capture.pooled import PooledAttention, capture_pooled_attention
from ..decoding.greedy_and_sampling import Constraints
from ..devices import choose_device
from ..language import join_sentences, say, to_say
from ..network.abstract_model import Side
from ..runnable_model import (
    CHAT_TEMPLATE,
    NO_TEMPLATE,
    TEMPLATE_MARK,
    LocalError,
    LocalModel,
    RunnableModel,
    remove_template_from_model_name,
)
from .adapter import ADAPTER_WEIGHTS, merge_adapter
from .attention import (
    ProbeError,
    check_cached_decoding,
    find_absent_maps,
    has_known_output_projections,
    install_and_verify_hook_points,
    register_attention,
)
from .distances import DistanceScores, measure_distance_scores
from .folder import (
    CONTINUATION_LACKS,
    NO_MASK_MESSAGE,
    NO_POSITIONS_MESSAGE,
    NO_STREAMS_LACKS,
    OTHER_INPUTS,
    SAFETENSORS_FILES,
    TRANSLATION_LACKS,
    AbsentMaps,
    convert_failure_to_local_error,
    describe_unapplied_generation_settings,
)
from .masked_words import MaskedWordModel
from .networks import DecoderNetwork, EncoderDecoderNetwork, FolderNetwork, can_patch_all_streams, get_text_config
from .pictures import make_picture_model, writes_text
from .positions import find_added_positions
from .prompt_templates import (
    ChatTemplate,
    PromptTemplate,
    TaskPrefix,
    describe_template,
    find_task_prefixes,
    find_translation_task,
)
from .speech import make_speech_model
from .tokenizer import FolderTokenizer, resolve_requested_languages

OFFLINE_OPTIONS: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
TEXT_INPUT, PICTURE_INPUT = "input_ids", "pixel_values"
POSITION_COUNT_NAMES = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
"""What configurations call the positions that a model has."""
MAX_POSITIONS = 512
"""Positions of a model without a table of them, such as T5; of one with more, all maps would take gigabytes."""
MAX_LONG_TEXT_TOKENS = 8192
"""Tokens of a text of which pooled maps are captured, at most: twice as many take four times as long."""
UNUSED_WEIGHTS = re.compile(r"\bpooler\b")
"""Weights that no attention depends on, and that a model trained without them has not."""
PROBE_SENTENCE = "This sentence is read once."
UNUSABLE_TEMPLATE_TEXT = to_say("The chat template of {folder} cannot be applied, so texts are read without it.")


class FolderModel(RunnableModel):
    """A model of transformers that writes: it lacks what needs to know more of its inside than attention."""

    model: FolderNetwork
    generation: GenerationConfig | None = None
    """What its folder says of writing."""
    absent: AbsentMaps = AbsentMaps()
    distances: Sequence[DistanceScores] = ()
    """What its attention makes of distances, where it adds no table of positions."""
    tokenizer: FolderTokenizer
    templates: Mapping[str, PromptTemplate | None]
    """What can be applied to a typed text, by name."""
    unusable_template_folder: str = ""
    """The name of the folder whose chat template is none of these, since it cannot be applied; "" where it can."""

    @property
    def notes(self) -> Sequence[str]:
        template = describe_template(self.templates, self.prompt_template)
        notes = (
            template,
            say(UNUSABLE_TEMPLATE_TEXT, folder=self.unusable_template_folder) if self.unusable_template_folder else "",
            *self.absent.sentences,
            *describe_unapplied_generation_settings(self.generation),
        )
        return tuple(filter(None, notes))

    def with_prompt_template(self, name: str) -> FolderModel:
        if name not in self.templates:
            super().with_prompt_template(name)
        found = copy.copy(self)
        base, own = remove_template_from_model_name(self.name), self.prompt_templates[0]
        found.name = base if name == own else f"{base}{TEMPLATE_MARK}{name}"
        found.prompt_template, found.tokenizer = name, self.tokenizer.with_template(self.templates[name])
        return found

    @torch.inference_mode()
    def read_long_text(
        self,
        ids: Sequence[int],
        rows: Collection[int] = (),
        *,
        pooled: bool = True,
        on_rows: Callable[[], None] = lambda: None,
    ) -> PooledAttention:
        assert isinstance(self.model, DecoderNetwork)
        capture = capture_pooled_attention(self.model.sites(), len(ids), rows, pooled=pooled, on_rows=on_rows)
        with capture as found:
            self.model.read(torch.tensor([ids], device=self.device))
        return found.attention

    @property
    def empty_rows(self) -> str:
        return say("zeros are put there, where eager attention of transformers would weigh all keys alike")


def load_folder_model(
    folder: Path, config: Mapping[str, Any], options: Mapping[str, str]
) -> RunnableModel | LocalModel:
    """Return what runs the folder's model; `config` is what its configuration file says. Raises LocalError.

    `options` are those of its name: source, target, dtype, template, adapter. On the GPU when there is one.
    """
    if "auto_map" in config and config["model_type"] not in CONFIG_MAPPING:
        raise LocalError(
            say("{folder} needs code that comes with it, and code from a folder is never run.", folder=folder.name)
        )
    with convert_failure_to_local_error(
        folder, to_say("{folder}: transformers {version} does not understand its configuration.")
    ):
        facts = AutoConfig.from_pretrained(folder, **OFFLINE_OPTIONS)
    kind = _choose_model_class(folder, config, facts)
    dtype = _choose_dtype(folder, config, options.get("dtype", DEFAULT_DTYPE))
    _check_memory(folder, dtype)
    if kind.main_input_name == PICTURE_INPUT:
        tokenizer = _load_tokenizer(folder) if writes_text(kind) else None
        return make_picture_model(folder, _load_pretrained_model(folder, kind, dtype, None), tokenizer)
    tokenizer = _load_tokenizer(folder)
    adapter = Path(options["adapter"]).expanduser() if "adapter" in options else None
    model = _load_pretrained_model(folder, kind, dtype, adapter)
    if kind is WhisperForConditionalGeneration:
        return make_speech_model(folder, model, tokenizer)
    name = (adapter or folder).name
    if not kind.can_generate():
        return _load_encoder_only(name, model, tokenizer)
    weights_hash = _hash_weights([*_list_weight_files(folder), *([adapter / ADAPTER_WEIGHTS] if adapter else [])])
    return _load_text_generator(name, weights_hash, folder, model, tokenizer, options, find_task_prefixes(config))


def _load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    with convert_failure_to_local_error(
        folder, to_say("{folder}: transformers {version} cannot read its tokenizer, or it has none.")
    ):
        return AutoTokenizer.from_pretrained(folder, **OFFLINE_OPTIONS)


def _choose_model_class(folder: Path, config: Mapping[str, Any], facts: PreTrainedConfig) -> type[PreTrainedModel]:
    """The class of transformers that the folder was saved from, or the one for its configuration. Raises LocalError."""
    kind: Any
    for name in config.get("architectures") or ():
        kind = getattr(transformers, str(name), None)
        own: Any = getattr(kind, "config_class", ())
        if isinstance(kind, type) and issubclass(kind, PreTrainedModel) and isinstance(facts, own):
            break
    else:
        mapping = MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING if facts.is_encoder_decoder else MODEL_FOR_CAUSAL_LM_MAPPING
        kind = (mapping if type(facts) in mapping else MODEL_MAPPING).get(type(facts), None)
    if kind is None:
        raise LocalError(
            say(
                "{folder}: transformers has no text model of the type {type}.",
                folder=folder.name,
                type=facts.model_type,
            )
        )
    assert issubclass(kind, PreTrainedModel)
    if kind.main_input_name != TEXT_INPUT and not _reads_sound_or_pictures(kind):
        message = OTHER_INPUTS.get(kind.main_input_name, to_say("{folder} does not read text."))
        raise LocalError(say(message, folder=folder.name))
    return kind


def _reads_sound_or_pictures(kind: type[PreTrainedModel]) -> bool:
    """Whether a class reads sound or pictures in a way that is known here."""
    is_seeing = kind.main_input_name == PICTURE_INPUT and (writes_text(kind) or not kind.can_generate())
    return is_seeing or kind is WhisperForConditionalGeneration


def _load_pretrained_model(
    folder: Path, kind: type[PreTrainedModel], dtype: torch.dtype, adapter: Path | None
) -> PreTrainedModel:
    """The model in eval mode, with eager attention; one whose weights are missing would be another model."""
    with convert_failure_to_local_error(
        folder, to_say("{folder}: transformers {version} cannot read its weights into its model.")
    ):
        try:
            model, report = kind.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                dtype=dtype,
                attn_implementation="eager",
                output_loading_info=True,
            )
        except ImportError as error:
            raise _make_missing_library_error(folder) from error
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
    if adapter is not None:
        model = merge_adapter(model, adapter)
    return model.to(choose_device()).eval().requires_grad_(False)


def _make_missing_library_error(folder: Path) -> LocalError:
    """Why a folder's weights are not read: the library of its quantisation is missing, or one of transformers' own."""
    settings = getattr(AutoConfig.from_pretrained(folder, **OFFLINE_OPTIONS), "quantization_config", None)
    method = settings.get("quant_method") if isinstance(settings, Mapping) else None
    if not isinstance(method, str):
        return LocalError(say("{folder} needs a library that is not installed here.", folder=folder.name))
    return LocalError(
        say(
            "{folder} is quantised by {method}, and the library that reads such weights is not installed here.",
            folder=folder.name,
            method=method[:40],
        )
    )


def _load_encoder_only(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> LocalModel:
    """An encoder: it reads, and its attention is seen as that of any model."""
    names = FolderTokenizer(tokenizer, model.config.vocab_size, continues=False)
    most = _compute_max_positions(model.config)

    def encode(text: str) -> tuple[int, ...]:
        ids = names.encode(text).ids
        if len(ids) > most:
            raise LocalError(
                say("this text has {count:,} tokens, and the model reads {most} at most", count=len(ids), most=most)
            )
        return ids

    def run_text(text: str) -> dict[str, list[str]]:
        ids = encode(text)
        model(input_ids=torch.tensor([ids], device=model.device))
        return {"source": [names.token(one) for one in ids]}

    given = name, model, run_text, names.special_tokens
    if type(model.config) not in MODEL_FOR_MASKED_LM_MAPPING or tokenizer.mask_token_id is None:
        return LocalModel(*given)
    head = MODEL_FOR_MASKED_LM_MAPPING[type(model.config)]
    if not isinstance(model, head if isinstance(head, tuple) else (head,)):
        return LocalModel(*given)
    return MaskedWordModel(*given, encode=encode, token=names.token, mask_id=int(tokenizer.mask_token_id))


def _load_text_generator(
    name: str,
    weights_hash: str,
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    options: Mapping[str, str],
    tasks: Mapping[str, TaskPrefix],
) -> RunnableModel:
    register_attention()
    generation = model.generation_config or GenerationConfig()
    two_sided = bool(model.config.is_encoder_decoder)
    task = find_translation_task(tasks, options)
    language = resolve_requested_languages(folder, tokenizer, generation, {} if task else options)
    banned = _make_forbidden_constraints(generation)
    begin = () if language.begin is None else (language.begin,)
    forced = Constraints(begin, banned.forbidden, uncounted=len(begin)) if two_sided else banned
    network = _make_network(folder, model, tokenizer, generation)
    vocabulary = model.get_output_embeddings().weight.shape[0]
    names = FolderTokenizer(tokenizer, vocabulary, continues=not two_sided, prefix=language.source_prefix)
    ids = torch.tensor([names.encode(PROBE_SENTENCE).ids], device=model.device)
    written = [one for one in range(len(names)) if one != get_text_config(model).pad_token_id]  # which may be zero
    target = torch.tensor([(written * (ids.shape[1] + 2))[: ids.shape[1] + 2]], device=model.device)
    try:
        with convert_failure_to_local_error(
            folder, to_say("{folder} fails on a short text in transformers {version}.")
        ):
            install_and_verify_hook_points(model, lambda: network(ids, target), ids.shape[1])
            check_cached_decoding(network, ids, target)
    except ProbeError as error:
        raise LocalError(
            say(
                "{folder} cannot be run live: {error}. Its attention can be captured from Python and opened here.",
                folder=folder.name,
                error=error,
            )
        ) from error
    found = FolderModel(
        name,
        network,
        names,
        max_length=network.positions,
        card=_make_card(model, tokenizer, two_sided=two_sided),
        weights_hash=weights_hash,
        forced=forced,
    )
    lengths: dict[Side, int] = {"target": target.shape[1] + (0 if two_sided else ids.shape[1] - 1)}
    network.added = find_added_positions(
        network, lambda: network(ids, target), lengths | ({"source": ids.shape[1]} if two_sided else {})
    )
    lacks = dict(TRANSLATION_LACKS if two_sided else CONTINUATION_LACKS)
    if len(network.added) != 1 + two_sided:
        lacks["positions"] = NO_POSITIONS_MESSAGE
        found.distances = measure_distance_scores(network, int(target[0, 1]))
    if not can_patch_all_streams(network, ids, target):
        lacks |= NO_STREAMS_LACKS
    found.generation, found.folder, found.absent = generation, folder, find_absent_maps(network)
    found.templates, found.unusable_template_folder = _list_prompt_templates(
        folder, tokenizer, tasks, two_sided=two_sided
    )
    chosen = options.get("template") or task or next(iter(found.templates))
    found.prompt_templates = (chosen, *(name for name in found.templates if name != chosen))
    if found.absent.encoder:
        lacks["attribution"] = NO_MASK_MESSAGE
    if not has_known_output_projections(network):
        lacks["word facts"] = ""
    found.lacks = lacks
    if isinstance(network, DecoderNetwork) and not any(one.computes_all_rows_at_once for one in network.sites()):
        most = _compute_max_positions(get_text_config(model), MAX_LONG_TEXT_TOKENS)
        found.max_long_text_tokens = most if most > found.max_length else 0
    return found.with_prompt_template(chosen)


def _list_prompt_templates(
    folder: Path, tokenizer: PreTrainedTokenizerBase, tasks: Mapping[str, TaskPrefix], *, two_sided: bool
) -> tuple[Mapping[str, PromptTemplate | None], str]:
    """What can be applied to a typed text, the folder's own choice first; its name where its chat template cannot."""
    if two_sided or not tokenizer.chat_template:
        return {NO_TEMPLATE: None, **(tasks if two_sided else {})}, ""
    try:
        chat = ChatTemplate(tokenizer)
        if PROBE_SENTENCE not in chat.apply(PROBE_SENTENCE).text:
            raise ValueError("the chat template leaves the text out")
    except ValueError:
        return {NO_TEMPLATE: None}, folder.name
    return {CHAT_TEMPLATE: chat, NO_TEMPLATE: None}, ""


def _make_network(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig
) -> FolderNetwork:
    ends = generation.eos_token_id if generation.eos_token_id is not None else tokenizer.eos_token_id
    end_ids = tuple(ends) if isinstance(ends, list | tuple) else (ends,)
    if None in end_ids:
        raise LocalError(say("{folder} does not say which token ends a text (eos_token_id).", folder=folder.name))
    positions = _compute_max_positions(get_text_config(model))
    if not model.config.is_encoder_decoder:
        return DecoderNetwork(model, end_ids[0], end_ids, positions)
    start = generation.decoder_start_token_id
    start = getattr(model.config, "decoder_start_token_id", None) if start is None else start
    if start is None:
        raise LocalError(
            say("{folder} does not say which token a target begins with (decoder_start_token_id).", folder=folder.name)
        )
    return EncoderDecoderNetwork(model, start, end_ids, positions)


def _compute_max_positions(config: PreTrainedConfig, most: int = MAX_POSITIONS) -> int:
    known = [getattr(config, name, None) for name in POSITION_COUNT_NAMES]
    offset = 2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0  # which begin to count at 2
    return min([most, *(one - offset for one in known if isinstance(one, int) and one > offset)])


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


def _hash_weights(files: Sequence[Path]) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the weights, of all files in their order."""
    found = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:12]


# How much memory a folder's model takes, known from its files before any weight is read.


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEFAULT_DTYPE = "float32"
OWN_DTYPE = "own"
"""The one that the folder's configuration names."""
HALF_SIZE_TEXT = to_say("With ?dtype=bfloat16 behind its name it takes half of what it takes in float32.")
MAX_HEADER_BYTES = 100_000_000
"""Of a safetensors file: the limit of the library itself."""
INTEGER_BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "U64": 8}
"""Bytes of a number by the name of its type in safetensors: those of quantised weights stay what they are."""
SPARE_BYTES = 300_000_000
"""What decoding a text and drawing it take beside the weights."""


def _choose_dtype(folder: Path, config: Mapping[str, Any], asked: str) -> torch.dtype:
    """Return the number format that is asked for by name. Raises LocalError for a name that is none."""
    if asked == OWN_DTYPE:
        text = config.get("text_config")
        inside = text if isinstance(text, Mapping) else {}
        named = [one.get(name) for one in (config, inside) for name in ("dtype", "torch_dtype")]
        asked = next((str(one) for one in named if one), DEFAULT_DTYPE)
    if asked not in DTYPES:
        raise LocalError(
            say(
                "{folder}: a model is computed in {known}, or in its {own} format, not in {asked}.",
                folder=folder.name,
                known=", ".join(DTYPES),
                own=OWN_DTYPE,
                asked=asked[:40],
            )
        )
    return DTYPES[asked]


def _check_memory(folder: Path, dtype: torch.dtype) -> None:
    """Raise LocalError where the model would not fit: better than a process that the system ends."""
    needed, free = estimate_model_memory_bytes(folder, dtype), read_free_memory_bytes()
    if free is not None and needed > free:
        raise LocalError(
            join_sentences(
                say(
                    "{folder} takes about {needed:.1f} GB in {dtype}, and {free:.1f} GB of memory are free.",
                    folder=folder.name,
                    needed=needed / 1e9,
                    dtype=str(dtype).removeprefix("torch."),
                    free=free / 1e9,
                ),
                say(HALF_SIZE_TEXT) if dtype == torch.float32 else "",
            )
        )


def estimate_model_memory_bytes(folder: Path, dtype: torch.dtype) -> int:
    """Return the bytes that the weights take in a format, and what a text takes beside them."""
    sizes = (math.prod(shape) * INTEGER_BYTES.get(kind, dtype.itemsize) for kind, shape in _read_weight_shapes(folder))
    return sum(sizes) + SPARE_BYTES


def _list_weight_files(folder: Path) -> list[Path]:
    """Return the files that transformers reads: the one, or those that the index names; in their order.

    Beside them a folder may hold the same weights in another layout.
    """
    whole, index = (folder / name for name in SAFETENSORS_FILES)
    if whole.is_file():
        return [whole]
    try:
        names = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        plain = {name for name in names if Path(name).name == name}
    except (OSError, ValueError, RecursionError, LookupError, AttributeError, TypeError):
        return []  # A damaged index is left to those who load it.
    return [folder / name for name in sorted(plain) if (folder / name).is_file()]


def _read_weight_shapes(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Type and shape of every tensor, from the heads of the files. A damaged file is left to those who load it."""
    for path in _list_weight_files(folder):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            try:
                head = json.loads(file.read(min(length, MAX_HEADER_BYTES)))
            except (ValueError, RecursionError):
                continue
        entries = head.values() if isinstance(head, dict) else ()
        known = [(str(one.get("dtype")), one.get("shape")) for one in entries if isinstance(one, dict)]
        yield from (
            (kind, shape)
            for kind, shape in known
            if isinstance(shape, list) and all(type(size) is int for size in shape)
        )


def read_free_memory_bytes() -> int | None:
    """Return the memory that a model may take where it will lie; None where the system does not say."""
    device = choose_device()
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = [one for one in (_read_available_memory(), _read_free_cgroup_memory()) if one is not None]
    return min(found, default=None)


def _read_available_memory() -> int | None:
    """What Linux says that new work can have without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _read_free_cgroup_memory() -> int | None:
    """What is left of the limit that a container has, with the copies of files that the kernel gives back."""
    group = Path("/sys/fs/cgroup")
    try:
        most, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        lines = (group / "memory.stat").read_text().splitlines()
        files = next(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, StopIteration, IndexError):  # "max": no limit
        return None
    return most - used + files
