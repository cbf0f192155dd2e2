"""The atlas of a decoder alone: planted heads are named, and every number is that of transformers' own attention."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.__main__ import main
from attenscope.atlas.build import Corpus, Repeats, build_atlas, make_repeated_sequences, plan_repeated_sequences
from attenscope.atlas.projection import project_tokens
from attenscope.atlas.query import (
    Atlas,
    find_most_ablation_sensitive_sentences,
    find_repetition_rows,
    open_atlas,
    parse_question,
    sample_rows_by_decile,
    search_atlas,
)
from attenscope.runnable_model import RunnableModel
from attenscope.trace import Head
from attenscope.user_model import load_user_model
from tests import folders

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers
LINES = ["the dog sees the dog and the dog .", *folders.TEXT[:4], "", "the the the red red book", "dog"]
PLACES = 128
INDUCTION_HEAD: Head = ("decoder", 1, 0)
PREVIOUS_HEAD: Head = ("decoder", 0, 1)
MEASURES = ("entropy", "distance", "top", "same", "previous", "first", "induction", "duplicate")


def make_planted_folder(folder: Path) -> Path:
    """A GPT-2 of whole words, with a head that looks one back and an induction head."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    from tests.model.analysis.test_planted_induction import make_induction_model

    words = sorted({word for line in [*LINES, *folders.TEXT] for word in line.split()})
    names = ["<s>", "</s>", "<unk>", *(f"▁{word}" for word in words)]
    made = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=made, **special).save_pretrained(folder)
    make_induction_model(len(names), PLACES).save_pretrained(folder)
    return folder


MAKERS: dict[str, Callable[[Path], Path]] = {"planted": make_planted_folder, **folders.FOLDERS}
Built = Callable[[str], tuple[RunnableModel, Atlas]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    base = tmp_path_factory.mktemp("decoders")
    (base / "text").write_text("\n".join(LINES) + "\n", encoding="utf-8")

    @cache
    def build(name: str) -> tuple[RunnableModel, Atlas]:
        live = load_user_model(f"hf:{MAKERS[name](base / name)}")
        assert isinstance(live, RunnableModel)
        build_atlas(live, Corpus.read(base / "text", None, 5), base / name / "atlas", costs=name == "llama")
        return live, open_atlas(base / name / "atlas", live.name, live.weights_hash)

    return build


def test_an_induction_head_and_a_head_that_looks_back_are_found_and_named(built: Built) -> None:
    _, atlas = built("planted")
    labels = {head: atlas.label(head) for head in atlas.names if atlas.label(head).place}
    assert {head: label.place for head, label in labels.items()} == {
        INDUCTION_HEAD: "induction",
        PREVIOUS_HEAD: "previous",
    }
    assert atlas.row(INDUCTION_HEAD)["induction_repeated"] > 0.99
    assert atlas.row(PREVIOUS_HEAD)["previous_repeated"] > 0.99
    assert labels[INDUCTION_HEAD].text == "induction: 100% of rows of random tokens repeated"
    rows = find_repetition_rows(atlas, INDUCTION_HEAD, "induction", 3)
    assert rows
    for row in rows:
        key = int(row.weights.argmax())
        assert 0 < key < row.query
        assert row.keys[key - 1] == row.keys[row.query]
    assert not find_repetition_rows(atlas, INDUCTION_HEAD, "duplicate", 3)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_no_head_of_a_random_model_is_named(name: str, built: Built) -> None:
    _, atlas = built(name)
    assert {label.place for label in atlas.labels} == {None}


def test_sequences_are_random_tokens_that_stand_four_times(built: Built) -> None:
    live, atlas = built("planted")
    repeats = plan_repeated_sequences(live)
    assert repeats == Repeats(50, 25, 4)
    assert atlas.manifest.repeats == repeats._asdict()
    found = make_repeated_sequences(live, repeats)
    blocks = set()
    for one in found:
        begin, *ids = [*one.source_ids, *one.target_ids[:-1]]
        assert live.tokenizer.token(begin) == "<s>"
        assert len(ids) == 100
        assert ids == ids[:25] * 4
        assert len(set(ids[:25])) == 25
        assert not {0, 1, 2} & set(ids)
        blocks.add(tuple(ids[:25]))
    assert len(blocks) == 50
    other = plan_repeated_sequences(built("gpt2")[0])  # reads 96 tokens
    assert other == Repeats(50, 23, 4)


@pytest.mark.parametrize("name", ["gpt2", "llama", "planted"])
def test_measures_are_those_of_transformers_attention(name: str, built: Built) -> None:
    """Loops over the rows of ``output_attentions=True``, one text at a time."""
    live, atlas = built(name)
    alone = load_alone(atlas.folder.parent)
    texts = [live.encode(line).ids for line in LINES if line]
    texts = [ids for ids in texts if len(ids) > 1]
    expected = {f"{measure}": value for measure, value in measure_texts(alone, [ids[:-1] for ids in texts]).items()}
    repeats = plan_repeated_sequences(live)
    assert repeats is not None
    sequences = [[*one.source_ids, *one.target_ids[:-1]] for one in make_repeated_sequences(live, repeats)]
    repeated = measure_texts(alone, sequences)
    for place in ("induction", "duplicate", "previous"):
        for end in ("", "_rows", "_even"):
            expected[f"{place}_repeated{end}"] = repeated[f"{place}{end}"]
    assert atlas.manifest.sentences == len(texts)
    assert {*expected} >= {*MEASURES, *(f"{place}_rows" for place in MEASURES[3:])}
    for measure, values in expected.items():
        own = [atlas.row(("decoder", *head))[measure] for head in np.ndindex(*values.shape)]
        np.testing.assert_allclose(own, values.ravel(), atol=1e-5, err_msg=measure)
    assert "stays" not in atlas.measures


def load_alone(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", local_files_only=True).eval()


def measure_texts(alone: Any, texts: list[Any]) -> dict[str, np.ndarray]:
    """Means over the rows that count, (L, H) each; shares of rows that have more than half of their weight there."""
    values: dict[str, list[np.ndarray]] = defaultdict(list)
    for ids in texts:
        with torch.no_grad():
            found = alone(torch.tensor([list(ids)]), output_attentions=True).attentions
        weights = np.stack([one[0].double().numpy() for one in found])
        for row in range(1, len(ids)):
            of_row = weights[:, :, row]
            logs = np.log(of_row, out=np.zeros_like(of_row), where=of_row > 0)
            values["entropy"].append(-(of_row * logs).sum(-1))
            values["distance"].append(of_row[..., :row] @ np.arange(row, 0, -1))
            values["top"].append(of_row.max(-1))
            before = [key for key in range(row) if ids[key] == ids[row]]
            keys = {"same": [row], "previous": [row - 1], "first": [0], "duplicate": before}
            keys["induction"] = [key + 1 for key in before if key + 1 < row]
            for place, held in keys.items():
                if held:
                    mass = of_row[..., held].sum(-1)
                    values[place].append(mass)
                    values[f"{place}_rows"].append(mass > 0.5)
                    values[f"{place}_even"].append(np.full(mass.shape, 2 * len(held) > row + 1))
    return {measure: np.mean(rows, 0) for measure, rows in values.items()}


def test_a_head_costs_what_its_text_loses_without_it(built: Built) -> None:
    live, atlas = built("llama")
    alone = load_alone(atlas.folder.parent)
    projection = alone.model.layers[1].self_attn.o_proj
    falls = []
    for line in LINES:
        ids = live.encode(line).ids if line else ()
        if len(ids) > 1:
            tokens = torch.tensor([ids])
            before = read_log_probs(alone, tokens)
            handle = projection.register_forward_pre_hook(silence_second_head)
            falls.append(before - read_log_probs(alone, tokens))
            handle.remove()
    row = atlas.row(("decoder", 1, 1))
    assert row["cost"] == pytest.approx(float(torch.cat(falls).mean()), abs=1e-5)
    assert row["cost_low"] <= row["cost"] <= row["cost_high"]
    found = find_most_ablation_sensitive_sentences(atlas, ("decoder", 1, 1), 1).iloc[0]
    most = max(range(len(falls)), key=lambda at: float(falls[at].sum()))
    assert found["cost"] == pytest.approx(float(falls[most].sum()), abs=1e-3)
    ids = live.encode(found["source"]).ids
    assert found["token"] == live.tokenizer.token(ids[1 + int(falls[most].argmax())])


def silence_second_head(_: Any, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor]:
    changed = given[0].clone()
    width = changed.shape[-1] // 4
    changed[..., width : 2 * width] = 0
    return (changed,)


@torch.no_grad()
def read_log_probs(alone: Any, tokens: torch.Tensor) -> torch.Tensor:
    return alone(tokens).logits[0, :-1].log_softmax(-1).gather(1, tokens[0, 1:, None])[:, 0]


def test_rows_and_links_are_of_the_text_that_is_read(built: Built) -> None:
    _, atlas = built("planted")
    assert atlas.manifest.skipped == {"empty": 1}
    first = ("<s>", *(f" {word}" for word in LINES[0].split()))
    rows = [row for tenth in sample_rows_by_decile(atlas, PREVIOUS_HEAD).values() for row in tenth]
    assert {row.keys for row in rows if row.sentence == 0} == {first[:-1]}
    for row in rows:
        assert row.weights.argmax() == row.query - 1
    found = search_atlas(atlas, parse_question("word=dog -> word=the distance=-1 map=decoder"), 1)
    assert found.heads.iloc[0][["layer", "head"]].tolist() == [0, 1]
    # English by its little words, so that its articles are known.
    assert search_atlas(atlas, parse_question("pos=NOUN -> pos=DET distance=-1"), 1).hits


def test_tokens_are_projected_from_the_text_that_is_read(built: Built) -> None:
    live, atlas = built("planted")
    found = project_tokens(live, atlas, "queries and keys", PREVIOUS_HEAD)
    lengths = [len(live.encode(line).ids) - 1 for line in LINES if line]
    assert len(found.tokens) == 2 * sum(lengths)
    sample = found.tokens[found.tokens["sentence"] == 0]
    assert sample["piece"].tolist()[:3] == ["<s>", " the", " dog"]
    pieces = project_tokens(live, atlas, "token embeddings", PREVIOUS_HEAD).tokens["piece"]
    assert len(set(pieces)) == len(pieces)
    assert math.isfinite(found.shares[0])


def test_the_command_line_builds_the_atlas_of_a_decoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_planted_folder(tmp_path / "planted")
    text = tmp_path / "text"
    text.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    call = ["atlas", "--source", str(text), "--output", str(folder / "atlas"), "--model", f"hf:{folder}", "--no-costs"]
    assert main([*call, "--target", str(text)]) == 2
    assert "leave out --target" in capsys.readouterr().err
    assert main(call) == 0
    assert "7 sentences" in capsys.readouterr().out
