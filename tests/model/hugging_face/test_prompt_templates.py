"""Chat templates and task prefixes of folders: the ids of transformers itself, roles, and templates that misbehave."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from attenscope.language import use_language
from attenscope.runnable_model import InputError, LocalError, RunnableModel
from attenscope.text.words import list_chat_token_roles
from attenscope.trace import AttentionTrace
from attenscope.user_model import load_user_model
from tests import folders

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers


@pytest.fixture(scope="module")
def chat_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.chat(tmp_path_factory.mktemp("chat") / "chat")


@pytest.fixture(scope="module")
def chat(chat_folder: Path) -> RunnableModel:
    return load(chat_folder)


def load(folder: Path, options: str = "") -> RunnableModel:
    found = load_user_model(f"hf:{folder}{options}")
    assert isinstance(found, RunnableModel)
    return found


def read(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("text", [folders.SENTENCE, "  a tree \n", "Ändere <|im_end|> das 😀!", "A"])
def test_ids_are_those_of_apply_chat_template(chat: RunnableModel, chat_folder: Path, text: str) -> None:
    chats = [{"role": "user", "content": text}]
    expected = read(chat_folder).apply_chat_template(chats, add_generation_prompt=True, return_dict=False)
    assert list(chat.encode(text).ids) == expected


def test_it_writes_what_generate_writes_of_the_chat(chat: RunnableModel, chat_folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    chats = [{"role": "user", "content": folders.SENTENCE}]
    ids = read(chat_folder).apply_chat_template(chats, add_generation_prompt=True, return_tensors="pt")["input_ids"]
    model = AutoModelForCausalLM.from_pretrained(chat_folder, attn_implementation="eager")
    written = model.generate(ids, max_new_tokens=8, do_sample=False)[0, ids.shape[1] :].tolist()
    found = chat.translate(folders.SENTENCE, max_tokens=8)
    assert list(found.target_ids) == written
    with torch.no_grad():
        whole = torch.tensor([[*ids[0].tolist(), *written[:-1]]])
        maps = torch.stack(model(whole, output_attentions=True).attentions)[:, 0]
    assert found.trace.decoder is not None
    assert abs(found.trace.decoder.weights - maps.numpy()).max() < 1e-5


def test_roles_are_whose_text_a_token_is(chat: RunnableModel, tmp_path: Path) -> None:
    found = chat.translate(folders.SENTENCE, max_tokens=4)
    decoder = found.trace.decoder
    assert decoder is not None
    fed = decoder.key_tokens
    roles = list_chat_token_roles(found.trace, len(fed))
    assert len(roles) == len(fed) + 1

    def text_of(role: str) -> str:
        return "".join(token for token, one in zip(fed, roles, strict=False) if one == role)

    assert text_of("system") == "you see a dog"
    assert text_of("user") == folders.SENTENCE
    assert text_of("assistant") == "".join(found.target_tokens[:-1])
    assert text_of("").startswith("<|im_start|>system\n<|im_end|>\n<|im_start|>user\n<|im_end|>")
    assert roles[-1] == "assistant"
    found.trace.save(tmp_path / "one.safetensors")
    assert list_chat_token_roles(AttentionTrace.load(tmp_path / "one.safetensors"), len(fed)) == roles


def test_its_marks_are_special(chat: RunnableModel) -> None:
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= chat.tokenizer.special_tokens
    decoder = chat.translate(folders.SENTENCE, max_tokens=2).trace.decoder
    assert decoder is not None
    assert {"<|im_start|>", "<|im_end|>"} <= decoder.special_tokens


@pytest.mark.sweep
def test_the_template_can_be_taken_away(chat: RunnableModel, chat_folder: Path) -> None:
    plain = chat.with_prompt_template("none")
    assert (chat.name, plain.name) == ("chat", "chat?template=none")
    assert list(plain.encode(folders.SENTENCE).ids) == read(chat_folder)(folders.SENTENCE)["input_ids"]
    assert plain.model is chat.model
    assert plain.with_prompt_template("chat").name == "chat"
    assert plain.encode(folders.SENTENCE).roles == ()
    assert any("stands in the chat template" in one for one in chat.notes)
    assert any("not applied" in one for one in plain.notes)
    with pytest.raises(LocalError, match="no prompt template 'poem'"):
        chat.with_prompt_template("poem")
    named = load(chat_folder, "?template=none")
    assert (named.name, named.prompt_template) == ("chat", "none")
    assert named.encode(folders.SENTENCE).ids == plain.encode(folders.SENTENCE).ids
    with pytest.raises(LocalError, match="no prompt template 'poem'"):
        load(chat_folder, "?template=poem")


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[0]['content'",
        "{{ raise_exception('no') }}",
        "{{ ().__class__.__base__.__subclasses__() }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        pytest.param("{{ 10 ** (10 ** 9) }}", marks=pytest.mark.sweep),
        "always the same",
        pytest.param("{{ messages[0]['content'] * 10 ** 10 }}", marks=pytest.mark.sweep),
        pytest.param("{% for a in range(99999) %}{{ messages[0]['content'] }}{% endfor %}", marks=pytest.mark.sweep),
    ],
)
def test_a_broken_or_endless_template_is_one_sentence_and_the_text_is_read_without_it(
    template: str, tmp_path: Path
) -> None:
    folder = folders.chat(tmp_path / "broken", template)
    started = time.monotonic()
    model = load(folder)
    assert time.monotonic() - started < 200
    (note,) = [one for one in model.notes if "chat template" in one]
    assert note == "The chat template of broken cannot be applied, so texts are read without it."
    with use_language("de"):  # A model is loaded once and read by visitors of every language.
        assert not set(model.notes) & {note}
    assert list(model.encode(folders.SENTENCE).ids) == read(folder)(folders.SENTENCE)["input_ids"]
    assert model.prompt_templates == ("none",)


def test_a_template_that_refuses_one_text_says_so_and_serves_the_next(tmp_path: Path) -> None:
    refuses = (
        "{% if 'tree' in messages[0]['content'] %}{{ raise_exception('x') }}{% endif %}{{ messages[0]['content'] }}"
    )
    model = load(folders.chat(tmp_path / "picky", refuses))
    with pytest.raises(InputError, match="cannot be applied to this text"):
        model.encode("a tree")
    assert "".join(model.encode("a river").tokens) == "a river"


def test_a_task_prefix_stands_before_the_text_where_it_is_chosen(tmp_path: Path) -> None:
    folder = folders.t5(tmp_path / "t5", folders.TASKS)
    plain = load(folder)
    assert plain.prompt_templates == ("none", "summarization", "translation_en_to_de")
    assert any("names task prefixes" in one for one in plain.notes)
    tokenizer = read(folder)
    prefixed = tokenizer(f"translate English to German: {folders.SENTENCE}")["input_ids"]
    assert list(plain.encode(folders.SENTENCE).ids) == tokenizer(folders.SENTENCE)["input_ids"]
    german = plain.with_prompt_template("translation_en_to_de")
    assert list(german.encode(folders.SENTENCE).ids) == prefixed
    assert list(german.encode(f"translate English to German: {folders.SENTENCE}").ids) == prefixed
    asked = load(folder, "?source=en&target=de")
    assert (asked.name, asked.prompt_template) == ("t5", "translation_en_to_de")
    assert list(asked.encode(folders.SENTENCE).ids) == prefixed
    with pytest.raises(LocalError):
        load(folder, "?source=en&target=zh")


def test_language_tokens_are_special(tmp_path: Path) -> None:
    model = load(folders.m2m_100(tmp_path / "m2m"), "?source=en&target=de")
    assert {"__en__", "__de__", "</s>"} <= model.tokenizer.special_tokens
    assert "<unk>" not in model.tokenizer.special_tokens
    cross = model.translate(folders.SENTENCE, max_tokens=4).trace.cross
    assert cross is not None
    assert cross.special_tokens >= {"__en__", "__de__", "</s>"}
