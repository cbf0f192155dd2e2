"""Make a folder of a kind, open it as the pages do, and hold what it gives against transformers alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attenscope.decoding.greedy_and_sampling import Constraints, Strategy
from attenscope.runnable_model import LocalError, LocalModel, RunnableModel
from attenscope.user_model import load_user_model
from bench.folders.kinds import FolderKind
from tests import folders
from tests.folders import SENTENCE

TOKENS = 20
TOLERANCE = 1e-5
SEED = 7


@dataclass(frozen=True)
class Outcome:
    """What came of one folder."""

    kind: FolderKind
    said: str = ""
    """The sentence of refusal; "" where it opened."""
    maps: str = ""
    notes: tuple[str, ...] = ()


def make_folder(kind: FolderKind, folder: Path) -> Path:
    """Write configuration, weights and tokenizer."""
    import transformers

    if kind.make is not None:
        kind.make(folder)
    else:
        folder.mkdir(parents=True)
        two_sides = "ForConditionalGeneration" in kind.name or kind.name == "MarianMTModel"
        tokenizer = folders.make_byte_level(folder, folders.SPECIAL, closes=two_sides, **folders.SPECIAL_NAMES)
        model_class = getattr(transformers, kind.name)
        ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
        ids |= {"decoder_start_token_id": 1} if two_sides else {}
        torch.manual_seed(SEED)
        config = model_class.config_class(**_add_vocabulary(kind.configuration, {"vocab_size": len(tokenizer), **ids}))
        model_class(config).save_pretrained(folder)
    if kind.config:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | dict(kind.config)))
    return folder


def _add_vocabulary(sizes: dict[str, Any], ids: dict[str, Any]) -> dict[str, Any]:
    """What the tokenizer says, also for the parts of a configuration that read or write text."""
    inside = {name: ids | sizes[name] for name in ("text_config", "encoder", "decoder") if name in sizes}
    return ids | sizes | inside


def judge_folder(kind: FolderKind, folder: Path) -> Outcome:
    """Open the folder and compare. What is refused carries its sentence. Raises AssertionError for a difference."""
    try:
        live = load_user_model(f"hf:{folder}{kind.options}")
    except LocalError as error:
        return Outcome(kind, said=str(error).replace(str(folder), "FOLDER"))
    from attenscope.hugging_face.load import FolderModel  # only where transformers is

    if isinstance(live, LocalModel):
        return _judge_encoder(kind, live, folder)
    assert isinstance(live, FolderModel)
    ends = tuple((one,) for one in live.model.end_ids)
    found = live.translate(SENTENCE, Strategy(constraints=Constraints(forbidden=ends)), max_tokens=TOKENS)
    alone, two_sides = load_alone(live), live.can("translate")
    source = torch.tensor([found.source_ids])
    settings = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False, "num_beams": 1}
    settings |= {"forced_bos_token_id": live.forced.prefix[0]} if live.forced.prefix else {}
    with torch.inference_mode():
        ids = torch.tensor([found.target_ids])
        fed = torch.cat([torch.tensor([[live.model.start_id]]), ids[:, :-1]], 1)
        given = {"input_ids": source, "decoder_input_ids": fed} if two_sides else {}
        whole = alone(**(given or {"input_ids": torch.cat([source, ids[:, :-1]], 1)}), output_attentions=True)
        if kind.passes:
            logits = [*whole.logits[0, -TOKENS:]]
            written = [int(row.index_fill(0, torch.tensor(live.model.end_ids), -torch.inf).argmax()) for row in logits]
        else:
            made = alone.generate(
                source, output_logits=True, return_dict_in_generate=True, forced_eos_token_id=None, **settings
            )
            written = made.sequences[0, 1 if two_sides else source.shape[1] :].tolist()
            logits = [row[0] for row in made.logits]
        assert list(found.target_ids) == written, (found.target_ids, written)
        log_prob = max(
            abs(step.log_prob - float(row.log_softmax(-1)[step.token_id]))
            for step, row in zip(found.steps, logits, strict=True)
        )
    names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    attention = 0.0
    for name, one in found.trace.maps.items():
        layers = [layer for layer in whole[names[name] if two_sides else "attentions"] if layer is not None]
        layers = [layer[..., : one.weights.shape[-1]] for layer in layers]
        expected = torch.stack(layers)[:, 0].numpy()
        assert expected.shape == one.weights.shape, (expected.shape, one.weights.shape)
        own = one.weights
        if live.absent.sinks and np.abs(expected.sum(-1) - 1).max() <= TOLERANCE:  # without the share of the sink
            own = own / own.sum(-1, keepdims=True)
        attention = max(attention, float(np.abs(expected - own).max()))
    maps = ", ".join(f"{name} {'x'.join(map(str, one.weights.shape))}" for name, one in found.trace.maps.items())
    assert max(attention, log_prob) <= TOLERANCE, (kind.name, attention, log_prob)
    return Outcome(kind, "", maps, tuple(live.notes))


def load_alone(live: RunnableModel) -> Any:
    """The same folder loaded by transformers alone, with its eager attention."""
    model_class: Any = type(live.model.model)
    assert live.folder is not None
    return model_class.from_pretrained(live.folder, attn_implementation="eager", local_files_only=True).eval()


def _judge_encoder(kind: FolderKind, live: LocalModel, folder: Path) -> Outcome:
    from transformers import AutoTokenizer

    trace = live.trace(SENTENCE)
    (one,) = trace.maps.values()
    model: Any = live.model
    ids = torch.tensor([AutoTokenizer.from_pretrained(folder, local_files_only=True)(SENTENCE)["input_ids"]])
    with torch.inference_mode():
        layers = model(input_ids=ids, output_attentions=True).attentions
    attention = float(np.abs(torch.stack(layers)[:, 0].numpy() - one.weights).max())
    assert attention <= TOLERANCE, (kind.name, attention)
    return Outcome(kind, "", f"{one.kind} {'x'.join(map(str, one.weights.shape))}")
