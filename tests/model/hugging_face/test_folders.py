"""Folders of Hugging Face models run by our decoding: every number is that of transformers itself."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.decoding.greedy_and_sampling import Constraints, Sampling, Strategy
from attenscope.experiments.ablation import compare_with_changes, head_effects, read_word_facts
from attenscope.experiments.lens import run_logit_lens
from attenscope.interventions.changes import InterventionError, parse_changes
from attenscope.runnable_model import InputError, LocalError, LocalModel, RunnableModel
from attenscope.trace import Kind
from attenscope.user_model import list_named_folders, load_user_model
from tests.folders import SENTENCE

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers

WRITERS = ("marian", "t5", "bart", "m2m_100", "gpt2", "llama")
EACH = pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in ("marian", "gpt2") else pytest.mark.sweep) for one in WRITERS]
)
STEPS, TOLERANCE = 10, 1e-5
ATTENTIONS: dict[Kind, str] = {
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}

Open = Callable[[str], RunnableModel]


def generated(live: RunnableModel, alone: Any, **settings: Any) -> Any:
    """What `generate` gives for the sentence, with what it attended to; no end is forced where it is cut off."""
    begin = {"forced_bos_token_id": live.forced.prefix[0]} if live.forced.prefix else {}
    source = torch.tensor([live.encode(SENTENCE).ids])
    kept = {"return_dict_in_generate": True, "output_attentions": True, "output_logits": True, "output_scores": True}
    settings = {"max_new_tokens": STEPS, "do_sample": False, "forced_eos_token_id": None, **begin, **kept, **settings}
    return alone.generate(source, **settings)


def new_ids(live: RunnableModel, sequence: torch.Tensor) -> tuple[int, ...]:
    return tuple(sequence[1 if live.can("translate") else len(live.encode(SENTENCE).ids) :].tolist())


@EACH
def test_greedy_decoding_and_its_attention_are_those_of_generate(name: str, opened: Open, reference: Any) -> None:
    live = opened(name)
    found, expected = live.translate(SENTENCE, max_tokens=STEPS), generated(live, reference(name), num_beams=1)
    assert found.target_ids == new_ids(live, expected.sequences[0])
    for step, logits in zip(found.steps, expected.logits, strict=True):
        log_probs = logits[0].log_softmax(-1)
        assert step.log_prob == pytest.approx(log_probs[step.token_id].item(), abs=TOLERANCE)
        for candidate in step.candidates:
            assert candidate.log_prob == pytest.approx(log_probs[candidate.token_id].item(), abs=TOLERANCE)
    assert live.check_observer(found).difference == 0
    with torch.inference_mode():
        ids, source = torch.tensor([found.target_ids]), torch.tensor([found.source_ids])
        fed = torch.cat([torch.tensor([[live.model.start_id]]), ids[:, :-1]], 1)
        given: dict[str, Any] = {"input_ids": source, "decoder_input_ids": fed}
        given = given if live.can("translate") else {"input_ids": torch.cat([source, ids[:, :-1]], 1)}
        whole = reference(name)(**given, output_attentions=True)
    assert set(found.trace.maps) == (set(ATTENTIONS) if live.can("translate") else {"decoder"})
    for kind, one in found.trace.maps.items():
        layers = whole[ATTENTIONS[kind] if live.can("translate") else "attentions"]
        np.testing.assert_allclose(one.weights, torch.stack(layers)[:, 0].numpy(), atol=TOLERANCE)
        assert not one.weights[:, :, ~one.mask].any()
    causal = found.trace.maps["decoder"].mask
    assert np.array_equal(causal, np.tril(np.ones_like(causal)))


@EACH
def test_beam_search_is_that_of_generate_and_its_tree_holds_it(name: str, opened: Open, reference: Any) -> None:
    live = opened(name)
    settings = {"num_beams": 3, "num_return_sequences": 3, "early_stopping": "never", "length_penalty": 1.0}
    expected = generated(live, reference(name), **settings)
    tree = live.search(SENTENCE, 3, 1.0, max_tokens=STEPS)
    ends = live.model.end_ids
    for hypothesis, sequence, score in zip(tree.best, expected.sequences, expected.sequences_scores, strict=True):
        ids = new_ids(live, sequence)
        cut = next((at + 1 for at, token in enumerate(ids) if token in ends), len(ids))
        assert hypothesis.token_ids == ids[:cut]
        assert hypothesis.score == pytest.approx(score.item(), abs=TOLERANCE)
    leaf = next(node for node in tree.nodes if node.token_ids == tree.best[0].token_ids)
    assert leaf.fate == "finished"
    read = live.force(SENTENCE, tree.best[0].token_ids)
    counted = read.steps[live.forced.uncounted :]
    assert sum(step.log_prob for step in counted) == pytest.approx(leaf.score, abs=1e-4)


@EACH
def test_a_text_that_is_read_keeps_what_decoding_it_gave(name: str, opened: Open) -> None:
    live = opened(name)
    written = live.translate(SENTENCE, max_tokens=STEPS)
    read = live.force(SENTENCE, written.target_ids, tensors=("q", "k", "v", "scores", "masked_scores"))
    assert read.target_tokens == written.target_tokens
    np.testing.assert_allclose(
        [step.log_prob for step in read.steps], [step.log_prob for step in written.steps], atol=TOLERANCE
    )
    for kind, one in written.trace.maps.items():
        again = read.trace.maps[kind]
        np.testing.assert_allclose(again.weights, one.weights, atol=TOLERANCE)
        assert (again.query_tokens, again.key_tokens) == (one.query_tokens, one.key_tokens)
        masked = again.tensors["masked_scores"]
        powers = np.exp(masked - masked.max(-1, keepdims=True))
        np.testing.assert_allclose(powers / powers.sum(-1, keepdims=True), again.weights, atol=TOLERANCE)
    own, first = written.trace.maps["decoder"], written.first_row
    assert own.rows("predicted")[first:] == written.target_tokens
    assert own.query_tokens[: first + 1][-1] == (written.source_tokens[first] if first else own.query_tokens[0])
    assert written.to_target.weights.shape[2:] == (STEPS, STEPS) == (len(written.steps), len(written.steps))
    assert written.to_source.weights.shape[2:] == (STEPS, len(written.source_ids))


@pytest.mark.parametrize("name", ["marian", "gpt2"])
def test_sampling_beginnings_and_forbidden_words(name: str, opened: Open) -> None:
    live = opened(name)
    draw = Strategy(Sampling(temperature=1.5), seed=3)
    drawn = [live.translate(SENTENCE, draw, max_tokens=STEPS).target_ids for _ in range(2)]
    assert drawn[0] == drawn[1] != live.translate(SENTENCE, max_tokens=STEPS).target_ids
    begin = live.words("Hund")
    forced = live.translate(SENTENCE, Strategy(constraints=Constraints(begin)), max_tokens=STEPS)
    assert forced.target_ids[: len(begin)] == begin
    assert all(step.forced for step in forced.steps[: len(begin)])
    first = live.translate(SENTENCE, max_tokens=1).target_ids
    without = live.translate(SENTENCE, Strategy(constraints=Constraints(forbidden=(first,))), max_tokens=STEPS)
    assert first[0] not in without.target_ids


@EACH
def test_a_head_off_is_the_model_without_its_part_of_the_output_projection(
    name: str, opened: Open, folder: Any
) -> None:
    live = opened(name)
    before = live.translate(SENTENCE, max_tokens=STEPS)
    kind: Kind = "cross" if live.can("translate") else "decoder"
    changed = compare_with_changes(live, before, parse_changes(f"{kind}.2.3:off"))
    site = next(one for one in live.model.modules() if getattr(one, "kind", "") == kind and one.layer == 1)
    weight = site.output_projection
    assert isinstance(weight, torch.Tensor)
    width = weight.shape[1] // 4
    kept = weight[:, 2 * width : 3 * width].clone()
    weight[:, 2 * width : 3 * width] = 0  # a view of the model's own weights
    try:
        by_hand = [step.log_prob for step in live.force(SENTENCE, before.target_ids, capture=False).steps]
    finally:
        weight[:, 2 * width : 3 * width] = kept
    np.testing.assert_allclose(changed.log_probs_after, by_hand, atol=1e-4)
    assert max(abs(a - b) for a, b in zip(changed.log_probs_after, changed.log_probs_before, strict=True)) > 1e-3
    effects = head_effects(live.model, before.source_ids, before.target_ids)
    expected = np.subtract(changed.log_probs_after, changed.log_probs_before)
    np.testing.assert_allclose(effects.changes[kind][1, 2], expected, atol=1e-4)
    uniform = compare_with_changes(
        live, before, parse_changes(f"{kind}.1.1:uniform, {kind}.1.2:head.1")
    ).after.trace.maps[kind]
    np.testing.assert_allclose(uniform.weights[0, 0, -1], 1 / uniform.mask[-1].sum(), atol=1e-6)
    assert np.array_equal(uniform.weights[0, 1], uniform.weights[0, 0])
    with pytest.raises(InterventionError, match=r"has \d layers"):
        compare_with_changes(live, before, parse_changes(f"{kind}.9.1:off"))


@EACH
def test_the_lens_goes_through_the_models_own_head(name: str, opened: Open, folder: Any) -> None:
    live = opened(name)
    found = live.translate(SENTENCE, max_tokens=STEPS)
    lens = run_logit_lens(live, found)
    assert lens.places == ("embedding", *(f"layer {number}" for number in range(1, len(lens.places))))
    np.testing.assert_allclose(lens.target_log_probs[-1], [step.log_prob for step in found.steps], atol=1e-4)
    assert (lens.ranks[-1] == [step.rank for step in found.steps]).all()
    assert abs(lens.target_log_probs[0] - lens.target_log_probs[-1]).max() > 1e-3
    if live.can("word facts"):
        facts = read_word_facts(live, SENTENCE, found.target_ids)
        np.testing.assert_allclose(facts.attention.sum(-1), 1, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["marian", "gpt2", *(pytest.param(one, marks=pytest.mark.slow) for one in WRITERS[1:4])]
)
def test_a_token_is_found_by_what_people_read(name: str, opened: Open) -> None:
    """All of a text; special tokens need not be."""
    tokenizer = opened(name).tokenizer
    names = [tokenizer.token(one) for one in range(len(tokenizer))]
    for token in filter(str.strip, names):
        found = tokenizer.piece_id(token)
        if found is None:
            assert token.startswith(("<", "__")) or not token.strip().isascii(), token
        else:
            assert names[found] == token
    assert tokenizer.piece_id("no such piece") is None


@pytest.mark.sweep
def test_two_visitors_at_once_do_not_mix(opened: Open) -> None:
    live = opened("marian")
    texts = [SENTENCE, "where did you buy this book ?", "a red bicycle stands by the river ."] * 3
    alone = {text: live.translate(text, max_tokens=STEPS) for text in set(texts)}
    changed = {text: compare_with_changes(live, alone[text], parse_changes("cross.1.1:off")) for text in set(texts)}
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda text: live.translate(text, max_tokens=STEPS), texts))
        without = list(
            threads.map(lambda text: compare_with_changes(live, alone[text], parse_changes("cross.1.1:off")), texts)
        )
    for text, found, other in zip(texts, together, without, strict=True):
        assert found.target_ids == alone[text].target_ids
        assert other.log_probs_after == changed[text].log_probs_after
        for kind, one in found.trace.maps.items():
            assert np.array_equal(one.weights, alone[text].trace.maps[kind].weights)


def test_an_encoder_reads(folder: Any) -> None:
    from transformers import AutoModel, AutoTokenizer

    read = load_user_model(f"hf:{folder('bert')}")
    assert isinstance(read, LocalModel)
    trace = read.trace(SENTENCE)
    assert set(trace.maps) == {"encoder"}
    assert trace.maps["encoder"].key_tokens[0] == "[CLS]"
    model = AutoModel.from_pretrained(folder("bert"), attn_implementation="eager").eval()
    inputs = AutoTokenizer.from_pretrained(folder("bert"))(SENTENCE, return_tensors="pt")
    with torch.inference_mode():
        expected = torch.stack(model(**inputs, output_attentions=True).attentions)[:, 0].numpy()
    np.testing.assert_allclose(trace.maps["encoder"].weights, expected, atol=TOLERANCE)
    with pytest.raises(LocalError, match="64 at most"):
        read.trace(SENTENCE * 40)


def test_texts_that_cannot_be_read(opened: Open) -> None:
    with pytest.raises(InputError, match="please type a sentence"):
        opened("marian").translate("  ")
    with pytest.raises(InputError, match="96 tokens at most"):
        opened("gpt2").translate(SENTENCE * 20)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: shutil.rmtree(folder), "There is no folder"),
        (lambda folder: (folder / "config.json").unlink(), "no folder of a Hugging Face model"),
        (lambda folder: (folder / "config.json").write_text("{"), "is not JSON"),
        (
            lambda folder: _config(folder, model_type="theirs", auto_map={"AutoModel": "theirs.Model"}),
            "code from a folder is never run",
        ),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "which is never opened"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no weights"), "cannot read its weights"),
        (lambda folder: _config(folder, model_type="nothing-known"), "does not understand its configuration"),
        (lambda folder: _config(folder, n_layer=9), "lacks 72 of the model's tensors"),
    ],
)
def test_a_folder_that_cannot_be_run_says_why(change: Any, said: str, folder: Any, tmp_path: Path) -> None:
    copy = tmp_path / "gpt2"
    shutil.copytree(folder("gpt2"), copy)
    change(copy)
    with pytest.raises(LocalError, match=said):
        load_user_model(f"hf:{copy}")


def _config(folder: Path, **changed: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def test_without_transformers_it_says_what_to_install(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder("gpt2")
    for name in [one for one in sys.modules if one.startswith("attenscope.hugging_face.load")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("attenscope.hugging_face.load", raising=False)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(LocalError, match="pip install transformers"):
        load_user_model(f"hf:{path}")


def test_a_directory_of_folders_and_the_language_that_is_written(folder: Any, tmp_path: Path) -> None:
    base = folder("m2m_100").parent
    assert list_named_folders(["--models", str(base)])["m2m_100"] == f"hf:{base / 'm2m_100'}"
    assert list_named_folders([]) == {}
    with pytest.raises(LocalError, match="no folder in it holds"):
        list_named_folders([f"--models={tmp_path}"])
    french = load_user_model(f"hf:{folder('m2m_100')}?source=en&target=fr")
    assert isinstance(french, RunnableModel)
    assert french.translate(SENTENCE, max_tokens=2).target_tokens[0] == "__fr__"
    assert french.card["target_language"] == "fr"
    with pytest.raises(LocalError, match="style is unknown"):
        load_user_model(f"hf:{folder('m2m_100')}?style=old")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("[" * 200_000, "config.json is not JSON"),
        ('{"model_type":' * 100_000 + "1" + "}" * 100_000, "config.json is not JSON"),
        ('{"model_type": "gpt2", "n_layer": 1000000000}', "n_layer = 1000000000; at most 1,024 are made"),
        ('{"model_type": "mixtral", "num_local_experts": 99999}', "= 99999; at most 32,768 are made"),
        ('{"model_type": "t5", "num_decoder_layers": 1e9}', "num_decoder_layers = 1000000000.0; at most"),
        ('{"model_type": "m", "text_config": {"num_hidden_layers": ' + "9" * 4000 + "}}", "num_hidden_layers = 99999"),
    ],
)
def test_a_configuration_that_would_not_end_is_refused(tmp_path: Path, config: str, says: str) -> None:
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(LocalError, match=says) as refused:
        load_user_model(f"hf:{tmp_path}")
    assert len(str(refused.value)) < 400


def test_a_width_is_no_number_of_layers(tmp_path: Path) -> None:
    """Of Qwen2-MoE as it is published."""
    from attenscope.hugging_face.folder import read_checked_config

    text = '{"model_type": "qwen2_moe", "shared_expert_intermediate_size": 5632, "block_size": 2048, "num_experts": 60}'
    (tmp_path / "config.json").write_text(text)
    assert read_checked_config(tmp_path)["num_experts"] == 60
