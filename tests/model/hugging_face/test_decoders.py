"""What a word of a decoder alone rests on, against captum and autograd on the model that transformers alone loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attenscope.__main__ import main
from attenscope.attribution.any_model import attribute_available_methods, compute_decoder_streams
from attenscope.attribution.methods import Attribution
from attenscope.attribution.target import make_piece_target
from attenscope.experiments.ablation import ablate_heads_for_word, read_word_facts
from attenscope.experiments.lens import run_logit_lens
from attenscope.experiments.patching import compare_at_first_difference, patch_heads, patch_stream
from attenscope.network.abstract_model import make_decoder_inputs
from attenscope.runnable_model import RunnableModel, Translation
from attenscope.user_model import load_user_model
from bench.folders.kinds import KINDS
from bench.folders.run import make_folder
from tests.folders import SENTENCE

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers
SHAPES = ("GPT2LMHeadModel", "LlamaForCausalLM", "Qwen2ForCausalLM", "GemmaForCausalLM", "GPTNeoXForCausalLM")
OTHER = "the old dog sees a tree ?"
STEPS, WORD, POINTS = 5, 3, 800
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in SHAPES[2:]]


class Eager:
    """The same folder with eager attention, from embeddings of the whole text."""

    def __init__(self, model: Any, found: Translation) -> None:
        self.model, self.prompt = model, len(found.source_ids)
        self.row, self.token = self.prompt - 1 + WORD, found.target_ids[WORD]
        self.ids = torch.tensor([[*found.source_ids, *found.target_ids[:WORD]]])
        self.table = model.get_input_embeddings()
        self.embedded = self.table(self.ids).detach()

    def run(self, embedded: Tensor | None = None, **how: Any) -> Any:
        """A hook, not `inputs_embeds`: the model may scale what it looks up."""
        handle = self.table.register_forward_hook(lambda *_: self.embedded if embedded is None else embedded)
        try:
            rows = 1 if embedded is None else len(embedded)
            return self.model(self.ids.expand(rows, -1), use_cache=False, **how)
        finally:
            handle.remove()

    def value_of(self, out: Any) -> Tensor:
        return out.logits[:, self.row].double().log_softmax(-1)[:, self.token]

    def value(self, embedded: Tensor) -> Tensor:
        return self.value_of(self.run(embedded))


@pytest.fixture(scope="module", params=[*SHAPES[:2], *SLOW])
def explained(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RunnableModel, Translation, dict[str, Attribution], Eager]:
    kind = next(one for one in KINDS if one.name == request.param)
    kind = replace(kind, sizes={**kind.sizes, "initializer_range": 0.1})  # sharper than it is made
    folder: Path = make_folder(kind, tmp_path_factory.mktemp("decoders") / kind.name)
    live = load_user_model(f"hf:{folder}")
    assert isinstance(live, RunnableModel)
    found = live.translate(SENTENCE, max_tokens=STEPS, capture=False)
    every, _ = attribute_available_methods(live, make_piece_target(live, found, WORD))
    model_class: Any = type(live.model.get_submodule("model"))
    alone = model_class.from_pretrained(folder, attn_implementation="eager", local_files_only=True).eval()
    return live, found, every, Eager(alone.requires_grad_(False), found)


Explained = tuple[RunnableModel, Translation, dict[str, Attribution], Eager]


def test_prompt_and_continuation_are_source_and_prefix(explained: Explained) -> None:
    _, found, every, eager = explained
    for one in every.values():
        assert one.target.prefix_tokens == found.target_tokens[:WORD]
        assert one.target_value == pytest.approx(float(eager.value(eager.embedded).detach()), abs=1e-5)
        assert len(one.source) == len(found.source_ids)
        assert len(one.prefix) == WORD


def test_gradients_are_those_of_captum(explained: Explained) -> None:
    captum = pytest.importorskip("captum.attr")
    _, _, every, eager = explained
    expected = captum.InputXGradient(eager.value).attribute(eager.embedded.clone().requires_grad_())
    np.testing.assert_allclose(every["gradient-x-input"].scores, expected.sum(-1)[0].detach(), atol=1e-4)


def test_integrated_gradients_are_a_fine_sum(explained: Explained) -> None:
    _, _, every, eager = explained
    own = every["integrated-gradients"]
    edges = torch.linspace(0, 1, POINTS + 1, dtype=torch.float64) ** 4  # finer at zero, where norms turn fast
    sums = np.zeros(eager.ids.shape[1])
    for low, high in zip(edges[:-1].split(100), edges[1:].split(100), strict=True):
        points = ((low + high) / 2).float()[:, None, None]
        leaves = (eager.embedded * points).requires_grad_()
        (slopes,) = torch.autograd.grad(eager.value(leaves).sum(), leaves)
        sums += ((slopes * eager.embedded).sum(-1).double() * (high - low)[:, None]).sum(0).numpy()
    ends = [float(eager.value(eager.embedded * point).detach()) for point in (0.0, 1.0)]
    difference = ends[1] - ends[0]
    assert own.total == pytest.approx(difference, abs=max(0.011 * abs(difference), 2e-3))
    np.testing.assert_allclose(own.scores, sums, atol=0.05 * np.abs(sums).max())


def test_a_piece_left_out_is_masked_and_zero(explained: Explained) -> None:
    """Against the eager model with a mask of four axes, which blocks the piece as a key."""
    _, _, every, eager = explained
    own, count = every["leave-one-out"], eager.ids.shape[1]
    whole = float(eager.value(eager.embedded).detach())
    lowest = torch.finfo(torch.float32).min
    causal = torch.full((count, count), lowest).triu(1)
    for piece in range(1, count):  # without the first its own row would have no key at all
        mask = causal.clone()
        mask[:, piece] = lowest
        changed = eager.embedded.clone()
        changed[:, piece] = 0
        value = float(eager.value_of(eager.run(changed, attention_mask=mask[None, None])))
        assert own.scores[piece] == pytest.approx(whole - value, abs=1e-4)


def test_attention_scores_are_those_of_the_eager_model(explained: Explained) -> None:
    _, _, every, eager = explained
    out = eager.run(eager.embedded.clone().requires_grad_(), output_attentions=True)
    gradients = torch.autograd.grad(eager.value_of(out).sum(), out.attentions, retain_graph=True)
    by_key = sum((one.double() * other).sum((0, 1, 2)) for one, other in zip(out.attentions, gradients, strict=True))
    assert isinstance(by_key, Tensor)
    np.testing.assert_allclose(every["attention-x-gradient"].scores, by_key.detach(), atol=1e-4)
    last = out.attentions[-1][0].mean(0)[eager.row].detach()
    np.testing.assert_allclose(every["attention"].scores, last, atol=1e-5)
    rolled = np.eye(len(last))
    for layer in out.attentions:
        rolled = (0.5 * layer[0].mean(0).detach().double().numpy() + 0.5 * np.eye(len(last))) @ rolled
    np.testing.assert_allclose(every["rollout"].scores, rolled[eager.row], atol=1e-5)


def test_shares_by_blocks_sum_to_one_where_blocks_are_found(explained: Explained) -> None:
    live, _, every, _ = explained
    parallel = "NeoX" in live.card["title"]
    assert ("alti" in every) is not parallel  # whose feed-forward network is added in the same sum
    if not parallel:
        assert every["alti"].scores.sum() == pytest.approx(1, abs=1e-6)


def test_a_head_off_is_the_model_without_its_part(explained: Explained) -> None:
    live, found, _, eager = explained
    effects = ablate_heads_for_word(live.model, make_piece_target(live, found, WORD)).effects
    assert set(effects.changes) == {"decoder"}
    layers, heads = effects.total("decoder").shape
    width = eager.embedded.shape[-1] // heads
    before = float(eager.value(eager.embedded).detach())
    projections = [
        module
        for name, module in eager.model.named_modules()
        if name.endswith(("attn.c_proj", "self_attn.o_proj", "attention.dense"))
    ]
    assert len(projections) == layers

    def silence(_: Any, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        changed = given[0].clone()
        changed[..., width : 2 * width] = 0
        return (changed,)

    handle = projections[1].register_forward_pre_hook(silence)
    after = float(eager.value(eager.embedded).detach())
    handle.remove()
    assert effects.total("decoder")[1, 1] == pytest.approx(after - before, abs=1e-4)


def test_the_lens_is_the_models_own_head_on_its_hidden_states(explained: Explained) -> None:
    live, found, _, eager = explained
    lens = run_logit_lens(live, found)
    ids = torch.tensor([[*found.source_ids, *found.target_ids[:-1]]])
    states = eager.model(ids, output_hidden_states=True, use_cache=False).hidden_states
    base = eager.model.base_model
    norm = next(getattr(base, name) for name in ("ln_f", "norm", "final_layer_norm") if hasattr(base, name))
    logits = eager.model.get_output_embeddings()(norm(states[1]))[0, eager.prompt - 1 :]
    own = logits.log_softmax(-1).gather(1, torch.tensor(found.target_ids)[:, None])[:, 0]
    assert lens.places[:2] == ("embedding", "layer 1")
    np.testing.assert_allclose(lens.target_log_probs[1], own.detach(), atol=1e-4)
    np.testing.assert_allclose(lens.target_log_probs[-1], [one.log_prob for one in found.steps], atol=1e-4)


def test_streams_after_every_sublayer_lead_to_the_output(explained: Explained) -> None:
    live, found, every, _ = explained
    if "alti" not in every:
        return
    fed = make_decoder_inputs(found.target_ids, live.model.start_id)
    streams = compute_decoder_streams(live.model, found.source_ids, fed)
    assert [*streams][:3] == ["embedding", "layer 1 self-attention", "layer 1 feed-forward"]
    lens = run_logit_lens(live, found, sublayers=True)
    np.testing.assert_allclose(lens.target_log_probs[-1], [one.log_prob for one in found.steps], atol=1e-4)


def test_a_patch_of_everything_brings_the_whole_difference_back(explained: Explained) -> None:
    live, found, _, _ = explained
    pair = compare_at_first_difference(live, found, live.translate(OTHER, max_tokens=STEPS, capture=False))
    streams = patch_stream(live, pair, "decoder")
    np.testing.assert_allclose(streams.whole_row_recovered_fraction, 1, atol=1e-3)
    assert streams.columns == (*pair.second_tokens, *pair.target.prefix_tokens)
    heads = patch_heads(live, pair, "decoder")
    assert heads.change.shape == live.translate(SENTENCE, max_tokens=1).trace.maps["decoder"].weights.shape[:2]


def test_the_card_says_what_prompt_and_continuation_were_looked_at(explained: Explained) -> None:
    live, found, _, eager = explained
    facts = read_word_facts(live, SENTENCE, found.target_ids)
    assert facts.source_tokens == (*found.source_tokens, *found.target_tokens[:-1])
    np.testing.assert_allclose(facts.attention.sum(1), 1, atol=1e-5)
    assert not facts.attention[WORD, eager.row + 1 :].any()
    assert facts.rank_source_attention_shares(WORD)[0].share > 0


def test_the_command_line_explains_a_continuation(
    folder: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["why", SENTENCE, "--word", "2", "--model", f"hf:{folder('llama')}", "--json", "--method"]
    assert main([*call, "all"]) == 0
    every = json.loads(capsys.readouterr().out)
    assert {"leave-one-out", "attention-x-gradient", "rollout", "alti"} <= {one["method"] for one in every}
    assert "".join(one["piece"] for one in every[0]["source"]).endswith(SENTENCE)
    assert main([*call, "heads-off"]) == 0
    assert {one["kind"] for one in json.loads(capsys.readouterr().out)["heads"]} == {"decoder"}
