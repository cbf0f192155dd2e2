"""Atlases of models that are not of this project: ours as strangers, folders against what transformers computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from attenscope.__main__ import main
from attenscope.atlas.build import Corpus, build_atlas
from attenscope.atlas.query import open_atlas, sample_rows_by_decile
from attenscope.runnable_model import RunnableModel
from attenscope.translate import Translator
from attenscope.user_model import load_user_model
from tests import folders
from tests.model.atlas.test_measures import corpus_of, pairs
from tests.strangers import as_stranger

PLACE = ["map", "layer", "head"]


@pytest.mark.parametrize("given", [True, False])
def test_of_our_own_model_it_is_the_same(toy_translator: Translator, tmp_path: Path, given: bool) -> None:
    """But for the contribution to the logit, which needs every norm by itself."""
    corpus = corpus_of(tmp_path / "text", pairs())
    corpus = corpus if given else Corpus.read(tmp_path / "text" / "a.en", None, 4)
    stranger = as_stranger(toy_translator)
    for name, model in (("own", toy_translator), ("other", stranger)):
        build_atlas(model, corpus, tmp_path / name)
    own, other = (pd.read_parquet(tmp_path / name / "heads.parquet") for name in ("own", "other"))
    assert set(own) - set(other) == {"logit"}
    for column in set(other) - set(PLACE):
        np.testing.assert_allclose(other[column], own[column], atol=1e-4, err_msg=column)
    for table in ("sentences", "links/0000"):
        first, second = (pd.read_parquet(tmp_path / name / f"{table}.parquet") for name in ("own", "other"))
        pd.testing.assert_frame_equal(first, second, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["marian", "t5", "bart", "m2m_100"])
def test_a_folder_is_measured_as_transformers_attends(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from transformers import AutoModelForSeq2SeqLM

    live = load_user_model(f"hf:{folders.FOLDERS[name](tmp_path / name)}")
    assert isinstance(live, RunnableModel)
    lines = [(folders.TEXT[at], folders.TEXT[at + 4]) for at in range(4)]
    build_atlas(live, corpus_of(tmp_path / "text", lines), tmp_path / "atlas")
    atlas = open_atlas(tmp_path / "atlas", live.name, live.weights_hash)
    table = atlas.heads.set_index(PLACE)
    alone: Any = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / name, attn_implementation="eager").eval()
    tops: dict[str, list[Any]] = {"encoder": [], "decoder": [], "cross": []}
    falls = []
    for source, target in lines:
        ids = live.add_forced_prefix(live.encode_target(target).ids)
        fed = torch.tensor([(live.model.start_id, *ids[:-1])])
        with torch.no_grad():
            out = alone(torch.tensor([live.encode(source).ids]), decoder_input_ids=fed, output_attentions=True)
            for kind, found in tops.items():
                weights = torch.stack(out[f"{kind}_attentions"])[:, 0]
                found.append(weights.max(-1).values[:, :, 1:] if kind == "decoder" else weights.max(-1).values)
            silent = _without_first_head(alone)
            less = alone(torch.tensor([live.encode(source).ids]), decoder_input_ids=fed)
            for module, kept in silent:
                module.weight.copy_(kept)
        own = torch.tensor(ids)[:, None]
        both = (one.logits[0].log_softmax(-1).gather(1, own)[:, 0] for one in (out, less))
        falls.append(next(both) - next(both))
    for kind, found in tops.items():
        means = torch.cat(found, -1).mean(-1)
        for layer, head in np.ndindex(*means.shape):
            assert table.loc[(kind, layer, head), "top"] == pytest.approx(float(means[layer, head]), abs=1e-5)
    assert table.loc[("cross", 0, 0), "cost"] == pytest.approx(float(torch.cat(falls).mean()), abs=1e-4)
    assert "logit" not in atlas.measures
    assert sample_rows_by_decile(atlas, ("decoder", 0, 0))["top"][0].keys[0] == live.tokenizer.token(
        live.model.start_id
    )


def _without_first_head(alone: Any) -> list[tuple[Any, torch.Tensor]]:
    """The first cross-attention's output projection without the columns of head 1, and what its weights were."""
    names = ("encoder_attn.out_proj", "EncDecAttention.o")
    module = next(one for name, one in alone.get_decoder().named_modules() if name.endswith(names))
    kept = module.weight.detach().clone()
    module.weight[:, : kept.shape[1] // 4] = 0
    return [(module, kept)]


@pytest.mark.slow
def test_the_command_line_builds_the_atlas_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    folder = folders.marian(tmp_path / "marian")
    text = tmp_path / "text"
    text.write_text("\n".join(folders.TEXT[:4]) + "\n", encoding="utf-8")
    call = ["atlas", "--source", str(text), "--output", str(folder / "atlas"), "--model"]
    assert main([*call, f"hf:{folder}"]) == 0
    assert "4 sentences" in capsys.readouterr().out
    gpt2 = folders.gpt2(tmp_path / "gpt2")  # A decoder alone, whose atlas may not take the place of another's.
    assert main([*call, f"hf:{gpt2}"]) == 2
    assert "holds an atlas that is made of something else" in capsys.readouterr().err
    call[call.index("--output") + 1] = str(gpt2 / "atlas")
    assert main([*call, f"hf:{gpt2}"]) == 0
    assert "4 sentences" in capsys.readouterr().out
