"""The engine against Python in a real browser: the same pieces, tokens, weights and log-probabilities."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Error, Page

from attenscope.checkpoint.load import Checkpoint, list_checkpoints, load_checkpoint
from attenscope.decoding.greedy_and_sampling import Constraints, Strategy
from attenscope.evaluation.quality import quantise_rows
from attenscope.experiments.ablation import head_effects, read_word_facts
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.network.config import PRESETS, make_preset_config
from attenscope.network.transformer import Transformer
from attenscope.runnable_model import InputError, Translation
from attenscope.text.tokenizer import Tokenizer
from attenscope.translate import Translator
from tests import toy
from tests.browser.engine_page import EnginePage, weights

DATA = Path(os.environ.get("ATTENSCOPE_DATA", "/nowhere"))
SENTENCES = {
    "en": "When I came home last night, the children were already asleep in bed.",
    "de": "Größe ist nicht alles: Über Äpfel läßt sich streiten – sagt „sie“…",
    "zh": "我昨天没有时间去图书馆,你呢?",
}
HOSTILE = (
    *("", "  a  b  ", "\t\n a \r\n b", "x ", "<s> </s> <pad> <unk>", "\ufeffab", "a\x00b", "▁▁a ▁b", "\u200b\u200bx"),
    *(
        "ﬁ ㎏ ½ Ⅷ",
        "e\u0301\u0300 Å",
        "ａｂｃ　１２",
        "👩‍👩‍👧 family",
        "한국어 ㅎㅏㄴ",
        "İıſß",
        "\u00ad\u2028x",
        "a\ufffd",
        "\U0010ffff",
    ),
    *("a" * 3000, "the cat " * 500, "<script>alert(1)</script>", "שלום עולם", "नमस्ते", "\u202eabc"),
)
BLOCKS = (
    *((0x20, 0x7E),) * 6,
    *((0, 0x1F), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x4FF), (0x590, 0x6FF), (0x900, 0x97F), (0x1100, 0x11FF)),
    *((0x2000, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xF900, 0xFFFF)),
    *((0x10000, 0x10FFFF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF)),
)
SIZES = {"d_model": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 48, "max_length": 60}
VOCABULARY = {"vocab_size": toy.VOCABULARY, "target_vocab_size": toy.VOCABULARY}
CHANGES = "encoder.1.2:off, cross.2.1:uniform, decoder.1.3:head.2, mask.cross.*.2.1:block, mask.encoder.1.*.3:block"
TOY = "the small dog sees a cat and the old child today."


def random_texts(count: int, seed: int) -> list[str]:
    chosen = random.Random(seed)
    characters = lambda: (chr(chosen.randint(*chosen.choice(BLOCKS))) for _ in range(chosen.randint(0, 30)))  # noqa: E731
    return ["".join(characters()) for _ in range(count)]


def check_tokenizer(engine: EnginePage, tokenizer: Tokenizer, texts: list[str], seed: int = 3) -> None:
    chosen = random.Random(seed)
    for at in range(0, len(texts), 500):
        part = texts[at : at + 500]
        expected = [tokenizer.encode(text) for text in part]
        for text, one, own in zip(part, expected, engine.encode(part), strict=True):
            assert own == {"ids": [*one.ids], "tokens": [*one.tokens], "unknown": [*one.unknown]}, repr(text)
    ids = [[chosen.randrange(len(tokenizer)) for _ in range(chosen.randint(0, 12))] for _ in range(300)]
    assert engine.decode(ids) == [tokenizer.decode(one) for one in ids]


def check_numbers(result: Translation, found: dict) -> None:
    """The tokens of `result` and, at its own precision, all that there is to see of it."""
    assert (found["text"], tuple(found["ids"])) == (result.text, result.target_ids)
    assert tuple(found["sourceTokens"]) == result.source_tokens
    assert np.abs(found["logProbs"] - [step.log_prob for step in result.steps]).max() < 1e-3
    for step, own in zip(result.steps, found["steps"], strict=True):
        assert own["rank"] == step.rank
        pairs = zip(own["candidates"], step.candidates, strict=True)
        assert all(abs(one["logProb"] - other.log_prob) < 1e-3 for one, other in pairs)
    for kind, one in result.trace.maps.items():
        assert np.abs(weights(found, kind) - one.weights).max() < 1e-4, kind
        mask = found["maps"][kind]["mask"].reshape(one.layers, *one.mask.shape)
        assert (mask.any(0) == one.mask).all(), kind
        assert not weights(found, kind)[~np.broadcast_to(mask[:, None], one.weights.shape).astype(bool)].any(), kind


def toy_checkpoint(**fields: object) -> Checkpoint:
    """A random model of the toy language whose weights are numbers of half precision."""
    torch.manual_seed(4)
    model = Transformer(
        make_preset_config(str(fields.pop("preset", "original")), **{**SIZES, **VOCABULARY, **fields})
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((parameter + 0.05 * torch.randn_like(parameter)).half())
    return toy.checkpoint(model)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        *((name, {}) for name in PRESETS),
        ("original", {"positions": "learned", "scale_scores": False}),
        ("original", {"d_model": 30, "heads": 3, "feed_forward": 41}),  # no multiples of four
    ],
)
def test_every_preset_computes_what_torch_computes(disk: Page, tmp_path: Path, name: str, fields: dict) -> None:
    checkpoint = toy_checkpoint(preset=name, **fields)
    engine, translator = EnginePage(disk, tmp_path, checkpoint), Translator(checkpoint)
    check_numbers(translator.translate(TOY), engine.translate(TOY))
    given = (9, 20, 2, 33, 1, 5, 60)
    check_numbers(translator.force(TOY, given), engine.translate(TOY, target=list(given)))
    tree, found = translator.search(TOY, 3), engine.translate(TOY, beam=3)["tree"]
    assert [tuple(one["ids"]) for one in found["best"]] == [one.token_ids for one in tree.best]
    assert [one["score"] for one in found["best"]] == pytest.approx([one.score for one in tree.best], abs=1e-3)
    names = ("position", "place", "parent", "token", "fate")
    last = found["nodes"][-1]["position"]  # at the length limit nothing runs on, whatever torch's topk says of -inf
    for node, own in zip(tree.nodes, found["nodes"], strict=True):
        assert tuple(own["ids"]) == node.token_ids
        assert all(own[one] == getattr(node, one) for one in names if (one, node.position) != ("fate", last))


@pytest.mark.sweep
def test_weights_of_eight_bits(disk: Page, tmp_path: Path) -> None:
    checkpoint = toy_checkpoint()
    with torch.no_grad():
        for parameter in checkpoint.model.parameters():
            if parameter.ndim == 2:
                scales, numbers = quantise_rows(parameter.numpy())
                parameter.copy_(torch.from_numpy(scales[:, None] * numbers))
    engine = EnginePage(disk, tmp_path, checkpoint, "int8")
    check_numbers(Translator(checkpoint).translate(TOY), engine.translate(TOY))


@pytest.mark.sweep
def test_changed_heads_and_masks_and_constraints(disk: Page, tmp_path: Path) -> None:
    checkpoint = toy_checkpoint()
    engine, translator = EnginePage(disk, tmp_path, checkpoint), Translator(checkpoint)
    with apply_changes(translator.model, parse_changes(CHANGES)):
        changed = translator.translate(TOY)
    check_numbers(changed, engine.translate(TOY, changes=CHANGES))
    plain = translator.translate(TOY)
    assert plain.target_ids != changed.target_ids
    ids = plain.target_ids
    constraints = Constraints((ids[0], 7), ((ids[3],), (7, ids[2])))
    own = {"prefix": [ids[0], 7], "forbidden": [[ids[3]], [7, ids[2]]]}
    check_numbers(translator.translate(TOY, Strategy(constraints=constraints)), engine.translate(TOY, constraints=own))
    best = translator.search(TOY, 4, constraints=constraints).best
    found = engine.translate(TOY, beam=4, constraints=own)["tree"]["best"]
    assert [tuple(one["ids"]) for one in found] == [one.token_ids for one in best]


@pytest.mark.sweep
@pytest.mark.parametrize("preset", ["original", "annotated"])
def test_what_a_translation_rests_on(disk: Page, tmp_path: Path, preset: str) -> None:
    """The logit lens and the effects of all heads, with changes open too; of norms after the layers and before."""
    checkpoint = toy_checkpoint(preset=preset)
    engine, translator = EnginePage(disk, tmp_path, checkpoint), Translator(checkpoint)
    found = engine.translate(TOY)
    for changes in ("", CHANGES):
        with apply_changes(translator.model, parse_changes(changes)):
            effects = head_effects(translator.model, found["sourceIds"], found["ids"])
        facts = read_word_facts(translator, TOY, found["ids"], parse_changes(changes))
        explained = engine.explain(found, changes)
        assert explained["ranks"] == facts.lens.ranks.tolist()
        heads = [(kind, *place) for kind, one in effects.changes.items() for place in np.ndindex(*one.shape[:2])]
        assert sorted(heads) == sorted((one["kind"], one["layer"], one["head"]) for one in explained["effects"])
        for one in explained["effects"]:
            expected = effects.changes[one["kind"]][one["layer"], one["head"]]
            assert np.abs(expected - one["changes"]).max() < 1e-4


@pytest.mark.sweep
@pytest.mark.skipif("everyday-zh-en" not in list_checkpoints(), reason="the checkpoint is not here")
def test_a_released_model(disk: Page, tmp_path: Path) -> None:
    checkpoint = load_checkpoint("everyday-zh-en")
    engine, translator = EnginePage(disk, tmp_path, checkpoint), Translator(checkpoint)
    check_tokenizer(engine, translator.tokenizer, [*SENTENCES.values(), *HOSTILE, *random_texts(500, 1)])
    text = SENTENCES[translator.card["source_language"]]
    check_numbers(translator.translate(text), engine.translate(text))
    best = translator.search(text, 4).best
    found = engine.translate(text, beam=4)
    assert tuple(found["ids"]) == best[0].token_ids
    for hostile in ("", " \u200b\n", "a " * 600, "b" * 20_000):
        with pytest.raises(InputError) as expected:
            translator.encode(hostile)
        with pytest.raises(Error) as said:
            engine.translate(hostile)
        assert str(expected.value) in said.value.message


@pytest.mark.sweep
def test_bytes_spell_what_has_no_piece(disk: Page, tmp_path: Path) -> None:
    text = [sentence for pair in toy.sentences(400) for sentence in pair]
    tokenizer = Tokenizer.train(text, 400, byte_fallback=True, split_digits=True)
    sizes = {"vocab_size": 400, "target_vocab_size": 400}
    checkpoint = toy_checkpoint(**sizes)
    spelled = Checkpoint("bytes", checkpoint.model, tokenizer, checkpoint.card)
    check_tokenizer(EnginePage(disk, tmp_path, spelled), tokenizer, [*HOSTILE, *random_texts(300, 2)])


def dev_lines(language: str) -> list[str]:
    files = {"en": "tatoeba/dev.en", "de": "tatoeba/dev.de", "zh": "zh-en/dev.zh"}
    return (DATA / files[language]).read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not DATA.is_dir(), reason="set ATTENSCOPE_DATA to the folder that holds tatoeba/dev.en")
@pytest.mark.parametrize("name", list_checkpoints())
def test_dev_sentences(disk: Page, tmp_path: Path, name: str) -> None:
    """All dev sentences as pieces; 500 of them translated, all but one at most into the same tokens."""
    checkpoint = load_checkpoint(name)
    engine, translator = EnginePage(disk, tmp_path, checkpoint), Translator(checkpoint)
    lines = [line for language in SENTENCES for line in dev_lines(language)]
    check_tokenizer(engine, translator.tokenizer, [*lines, *HOSTILE, *random_texts(5000, 7)])
    other = 0
    for text in dev_lines(translator.card["source_language"])[:500]:
        result, found = translator.translate(text), engine.translate(text)
        if tuple(found["ids"]) == result.target_ids:
            check_numbers(result, found)
        else:
            other += 1
    assert other <= 1
