"""A toy language pair and a tiny model that has learned it, so that tests run on a model that really translates.

Every English word has one German word, so the right translation of a sentence is known: `translation`. The weights are
kept beside this file; ``python -m tests.toy`` trains them again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from attenscope.checkpoint.load import Checkpoint, build_model, to_safetensors, unique_weights
from attenscope.network.config import PAD_ID, TransformerConfig
from attenscope.network.transformer import Transformer
from attenscope.text.tokenizer import Tokenizer
from attenscope.training.data import Batches, SentencePair

WORDS = {
    **{"the": "der", "a": "ein", "small": "kleine", "old": "alte", "red": "rote", "and": "und"},
    **{"dog": "Hund", "cat": "Katze", "house": "Haus", "tree": "Baum", "child": "Kind"},
    **{"sees": "sieht", "likes": "mag", "finds": "findet", "today": "heute", "here": "hier"},
}
VOCABULARY = 160
WEIGHTS = Path(__file__).with_suffix(".safetensors")


def translation(english: str) -> str:
    """Word by word: "the dog sees a cat." -> "der Hund sieht ein Katze." """
    return " ".join(WORDS[word] for word in english.removesuffix(".").split()) + "."


def sentences(count: int, seed: int = 0) -> list[SentencePair]:
    """Pairs such as ("the old dog sees a tree today.", "der alte Hund sieht ein Baum heute.")."""
    chosen = random.Random(seed)
    return [(english, translation(english)) for english in (_sentence(chosen) for _ in range(count))]


def _sentence(chosen: random.Random) -> str:
    words = [*_noun_phrase(chosen), chosen.choice(["sees", "likes", "finds"]), *_noun_phrase(chosen)]
    if chosen.random() < 0.3:
        words += ["and", *_noun_phrase(chosen)]
    if chosen.random() < 0.5:
        words.append(chosen.choice(["today", "here"]))
    return " ".join(words) + "."


def _noun_phrase(chosen: random.Random) -> Iterator[str]:
    yield chosen.choice(["the", "a"])
    if chosen.random() < 0.6:
        yield chosen.choice(["small", "old", "red"])
    yield chosen.choice(["dog", "cat", "house", "tree", "child"])


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.train([sentence for pair in sentences(400) for sentence in pair], VOCABULARY)


def config(**fields: object) -> TransformerConfig:
    """Two layers, two heads, 64 wide; any field may be given otherwise."""
    sizes = {"vocab_size": VOCABULARY, "target_vocab_size": VOCABULARY, "max_length": 64, "dropout": 0.0}
    widths = {"d_model": 64, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 128}
    return TransformerConfig(**{**sizes, **widths, **fields})  # type: ignore[arg-type]


def random_model(seed: int = 0, **fields: object) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(config(**fields)).eval()


def batches(count: int = 800, tokens: int = 320, seed: int = 1) -> Batches:
    pairs = sentences(count, seed)
    encoded = [tokenizer().encode_ids([pair[side] for pair in pairs]) for side in (0, 1)]
    return Batches(encoded[0], encoded[1], tokens, longest=60, seed=seed)


def learned_model() -> Transformer:
    """A tiny Transformer that has learned the toy pair, with the weights beside this file."""
    return build_model(config(), load_file(WEIGHTS), WEIGHTS.name)


def train_model(steps: int = 240) -> Transformer:
    """Train that Transformer again, in 12 s on one core."""
    model, text = random_model(), batches()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98))
    for step, (_, rows) in enumerate(text.steps(0)):
        if step == steps:
            break
        optimizer.param_groups[0]["lr"] = 4e-3 * min((step + 1) / 30, 1 - step / steps)
        batch = text.batch(rows)
        logits = model(batch.source, batch.target_in)
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD_ID).backward()
        optimizer.step()
    return model.eval()


def checkpoint(model: Transformer, name: str = "toy-en-de") -> Checkpoint:
    card = {"title": "Toy English to German", "source_language": "en", "target_language": "de"}
    return Checkpoint(name, model, tokenizer(), {**card, "licence": "CC0", "data": "made up"}, "0123456789ab")


def write_text(folder: Path, count: int = 300, dev: int = 20) -> Path:
    """A data folder as `python -m model train --data` wants it."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in (("train", sentences(count, 3)), ("dev", sentences(dev, 4))):
        for language, side in (("en", 0), ("de", 1)):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return folder


if __name__ == "__main__":
    WEIGHTS.write_bytes(to_safetensors(unique_weights(train_model())))
