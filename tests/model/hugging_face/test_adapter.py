"""An adapter on a folder's model: merged as peft itself computes it, or refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from attenscope.hugging_face import adapter as adapters
from attenscope.runnable_model import LocalError, RunnableModel
from attenscope.user_model import list_named_folders, load_user_model
from tests import folders

transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
pytestmark = [
    pytest.mark.timeout(600),  # a busy machine takes a minute to import transformers
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),  # peft reads it
]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return folders.llama(tmp_path / "base")


@pytest.fixture
def adapter(base: Path) -> Path:
    """A LoRA of random weights, neither of whose factors is zero."""
    torch.manual_seed(folders.SEED)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "k_proj"], init_lora_weights=False)
    folder = base.parent / "tuned"
    peft.get_peft_model(transformers.AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(folder)
    return folder


def load(name: str) -> RunnableModel:
    found = load_user_model(f"hf:{name}")
    assert isinstance(found, RunnableModel)
    return found


def test_its_attention_is_that_of_peft(base: Path, adapter: Path) -> None:
    tuned, plain = load(f"{base}?adapter={adapter}"), load(str(base))
    assert (tuned.name, plain.name) == ("tuned", "base")
    assert tuned.weights_hash != plain.weights_hash
    found = tuned.translate(folders.SENTENCE, max_tokens=4)
    ids = torch.tensor([[*found.source_ids, *found.target_ids[:-1]]])
    eager = transformers.AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager")
    whole = peft.PeftModel.from_pretrained(eager, adapter).eval()
    with torch.inference_mode():
        expected = torch.stack(whole(input_ids=ids, output_attentions=True).attentions)[:, 0].numpy()
    np.testing.assert_allclose(found.trace.maps["decoder"].weights, expected, atol=1e-5)
    unchanged = plain.force(folders.SENTENCE, found.target_ids).trace.maps["decoder"].weights
    assert np.abs(unchanged - expected).max() > 0.01


def test_a_directory_of_models_holds_its_adapters(base: Path, adapter: Path) -> None:
    specs = list_named_folders(["--models", str(base.parent)])
    assert list(specs) == ["base", "tuned"]
    assert load_user_model(specs["tuned"]).name == "tuned"
    settings = adapter / "adapter_config.json"
    written = json.loads(settings.read_text(encoding="utf-8"))
    for named, opens in (("someone/base", True), ("someone/nowhere", False), (None, False)):
        settings.write_text(json.dumps(written | {"base_model_name_or_path": named}), encoding="utf-8")
        spec = list_named_folders(["--models", str(base.parent)])["tuned"]
        if opens:
            assert load_user_model(spec).name == "tuned"
        else:
            with pytest.raises(LocalError, match="name the folder of its base"):
                load_user_model(spec)


def test_it_goes_with_a_dtype(base: Path, adapter: Path) -> None:
    tuned = load(f"{base}?dtype=bfloat16&adapter={adapter}")
    assert {one.dtype for one in tuned.model.parameters()} == {torch.bfloat16}


def test_an_adapter_alone_says_how_it_is_opened(adapter: Path) -> None:
    with pytest.raises(LocalError, match=r"is an adapter .*`hf:BASE\?adapter=.*tuned`"):
        load(str(adapter))


def test_what_is_no_adapter_of_the_model_is_refused(base: Path, adapter: Path, tmp_path: Path) -> None:
    settings = adapter / "adapter_config.json"
    for written, said in (
        (json.dumps({"peft_type": "PROMPT_TUNING"}), "an adapter of the type PROMPT_TUNING"),
        (json.dumps(["LORA"]), "an adapter of the type"),
        ("{", "is not JSON"),
    ):
        kept = settings.read_text(encoding="utf-8")
        settings.write_text(written, encoding="utf-8")
        with pytest.raises(LocalError, match=said):
            load(f"{base}?adapter={adapter}")
        settings.write_text(kept, encoding="utf-8")
    with pytest.raises(LocalError, match="it is no adapter"):
        load(f"{base}?adapter={tmp_path / 'nowhere'}")
    other = folders.llama(tmp_path / "wide", hidden_size=64)
    with pytest.raises(LocalError, match="does not fit the model"):
        load(f"{other}?adapter={adapter}")
    (adapter / adapters.ADAPTER_WEIGHTS).rename(adapter / "adapter_model.bin")
    with pytest.raises(LocalError, match="no weights in safetensors"):
        load(f"{base}?adapter={adapter}")
