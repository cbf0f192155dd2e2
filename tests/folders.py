"""Tiny folders of Hugging Face models, made of random weights and of tokenizers trained on the text below."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = [
    "the old dog sees a tree in the garden .",
    "a red bicycle stands by the river .",
    "where did you buy this book ?",
    "the bank by the river was closed .",
    "der alte Hund sieht einen Baum im Garten .",
    "ein rotes Fahrrad steht am Fluss .",
    "wo hast du dieses Buch gekauft ?",
    "die Bank am Fluss war geschlossen .",
]
SENTENCE = "the old dog sees a tree ."
SEED = 5
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
SPECIAL_NAMES = {"pad": "<pad>", "bos": "<s>", "eos": "</s>", "unk": "<unk>"}
SIZES: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 96,
    "init_std": 0.4,
}


def pieces(size: int = 66) -> bytes:
    """A SentencePiece model of the text, with <unk>, <s> and </s> at 0, 1 and 2."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(TEXT), model_writer=written, vocab_size=size, model_type="unigram", minloglevel=2
    )
    return written.getvalue()


def marian(folder: Path, targets: tuple[str, ...] = (), **settings: Any) -> Path:
    """One that writes German or, of several `targets`, the one whose token stands before the source.

    `settings` are those of its configuration.
    """
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir(parents=True)
    model = pieces()
    read = sentencepiece.SentencePieceProcessor(model_proto=model)
    names = ["</s>", "<unk>", *[read.IdToPiece(one) for one in range(3, read.GetPieceSize())]]
    names += [*(f">>{one}<<" for one in targets), "<pad>"]
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model)
    (folder / "vocab.json").write_text(json.dumps({name: at for at, name in enumerate(names)}), encoding="utf-8")
    facts: dict[str, Any] = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": "en",
        "target_lang": "multi" if targets else "de",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(facts), encoding="utf-8")
    pad = len(names) - 1
    ids: dict[str, Any] = {
        "pad_token_id": pad,
        "eos_token_id": 0,
        "decoder_start_token_id": pad,
        "forced_eos_token_id": 0,
    }
    torch.manual_seed(SEED)
    made = MarianMTModel(
        MarianConfig(**{"vocab_size": len(names), "scale_embedding": True, **ids, **SIZES, **settings})
    )
    made.generation_config.bad_words_ids = [[pad]]
    made.save_pretrained(folder)
    return folder


TASKS = {
    "summarization": {"prefix": "summarize: ", "num_beams": 4},
    "translation_en_to_de": {"prefix": "translate English to German: "},
    "broken": {"prefix": 3},
}


def t5(folder: Path, tasks: Any = None) -> Path:
    from transformers import T5Config, T5ForConditionalGeneration

    fast = _word_level(folder, ["<pad>", "</s>", "<unk>"], eos="</s>", pad="<pad>", unk="<unk>")
    sizes: dict[str, Any] = {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_layers": 2,
        "num_decoder_layers": 2,
        "num_heads": 4,
    }
    ids: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    torch.manual_seed(SEED)
    config = T5Config(vocab_size=len(fast), initializer_factor=1.5, **sizes, **ids)
    T5ForConditionalGeneration(config).save_pretrained(folder)
    if tasks is not None:
        path = folder / "config.json"
        facts = json.loads(path.read_text(encoding="utf-8")) | {"task_specific_params": tasks}
        path.write_text(json.dumps(facts), encoding="utf-8")
    return folder


def bart(folder: Path) -> Path:
    from transformers import BartConfig, BartForConditionalGeneration

    fast = make_byte_level(folder, ["<s>", "<pad>", "</s>", "<unk>"], bos="<s>", eos="</s>", pad="<pad>", unk="<unk>")
    ids: dict[str, Any] = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    torch.manual_seed(SEED)
    made = BartForConditionalGeneration(BartConfig(vocab_size=len(fast), **ids, **SIZES))
    made.generation_config.forced_bos_token_id = 0
    made.save_pretrained(folder)
    return folder


def m2m_100(folder: Path) -> Path:
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

    folder.mkdir(parents=True)
    model = pieces()
    read = sentencepiece.SentencePieceProcessor(model_proto=model)
    names = ["<s>", "<pad>", "</s>", "<unk>", *[read.IdToPiece(one) for one in range(3, read.GetPieceSize())]]
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    (folder / "vocab.json").write_text(json.dumps({name: at for at, name in enumerate(names)}), encoding="utf-8")
    tokenizer = M2M100Tokenizer(
        str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"), src_lang="en", tgt_lang="de"
    )
    tokenizer.save_pretrained(folder)
    ids: dict[str, Any] = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    torch.manual_seed(SEED)
    size = max(tokenizer.lang_token_to_id.values()) + 1
    M2M100ForConditionalGeneration(M2M100Config(vocab_size=size, **ids, **SIZES)).save_pretrained(folder)
    return folder


def gpt2(folder: Path) -> Path:
    from transformers import GPT2Config, GPT2LMHeadModel

    fast = make_byte_level(folder, ["<|endoftext|>"], eos="<|endoftext|>", bos="<|endoftext|>", unk="<|endoftext|>")
    torch.manual_seed(SEED)
    sizes: dict[str, Any] = {"n_positions": 96, "n_embd": 32, "n_layer": 3, "n_head": 4, "initializer_range": 0.4}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(fast), bos_token_id=0, eos_token_id=0, **sizes)).save_pretrained(folder)
    return folder


GROUPED_QUERIES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "max_position_embeddings": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
}
"""Sizes of a decoder in which two heads share keys and values."""


def llama(folder: Path, **settings: Any) -> Path:
    """A decoder with rotary positions; `settings` are those of its configuration."""
    from transformers import LlamaConfig, LlamaForCausalLM

    fast = make_byte_level(folder, ["<s>", "</s>", "<unk>"], bos="<s>", eos="</s>", unk="<unk>")
    torch.manual_seed(SEED)
    config = LlamaConfig(vocab_size=len(fast), bos_token_id=0, eos_token_id=1, **GROUPED_QUERIES | settings)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


CHAT_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nyou see a dog<|im_end|>\n' }}{% endif %}"
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] | trim + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Of ChatML, with a message of the system where nobody gives one."""


def chat(folder: Path, template: str = CHAT_TEMPLATE) -> Path:
    """A decoder without a token that begins a text, whose tokenizer has a chat template, as Qwen's."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    fast = make_byte_level(folder, marks, eos="<|im_end|>", pad="<|endoftext|>", closes=False)
    fast.chat_template = template
    fast.save_pretrained(folder)
    torch.manual_seed(SEED)
    config = Qwen2Config(vocab_size=len(fast), bos_token_id=None, eos_token_id=2, pad_token_id=0, **GROUPED_QUERIES)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder


def bert(folder: Path) -> Path:
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    folder.mkdir(parents=True)
    words = sorted({word for line in TEXT for word in line.lower().split()})
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *[f"##{one}" for one in "abcdefghijklmnoprstuvwy"]]
    (folder / "vocab.txt").write_text("\n".join(names), encoding="utf-8")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    torch.manual_seed(SEED)
    config = BertConfig(vocab_size=len(names), max_position_embeddings=64, initializer_range=0.4, **sizes)
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def whisper(folder: Path) -> Path:
    """A Whisper of 3 seconds with a sound of 2, two heads of which are said to follow it."""
    import wave

    from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    marks = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
    names = dict.fromkeys(("eos", "bos", "unk", "pad"), marks[0])
    fast = make_byte_level(folder, marks, closes=False, **names)
    fast.add_special_tokens({"additional_special_tokens": marks[1:]})
    fast.save_pretrained(folder)
    sizes = {"d_model": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_mel_bins": 16, "init_std": 0.3}
    sizes |= {f"{side}_layers": 2 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    ids = {"decoder_start_token_id": 1, "eos_token_id": 0, "pad_token_id": 0, "bos_token_id": 0}
    none: dict[str, Any] = {"suppress_tokens": [], "begin_suppress_tokens": []}
    lengths = {"max_source_positions": 150, "max_target_positions": 24}
    torch.manual_seed(1)
    made = WhisperForConditionalGeneration(WhisperConfig(vocab_size=len(fast), **sizes, **ids, **none, **lengths))
    for name, value in {
        "_from_model_config": False,  # else they are not read again
        "is_multilingual": False,
        "alignment_heads": [[0, 1], [1, 2]],
        "no_timestamps_token_id": 4,
        "max_length": 24,
    }.items():
        setattr(made.generation_config, name, value)
    made.save_pretrained(folder)
    WhisperFeatureExtractor(feature_size=16, chunk_length=3).save_pretrained(folder)
    samples = torch.randn(32_000, generator=torch.Generator().manual_seed(2)).mul(3000).to(torch.int16)
    with wave.open(str(folder / "speech.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(samples.numpy().tobytes())
    return folder


def write_picture(path: Path, width: int = 96, height: int = 60) -> None:
    """A picture that grows lighter to the right, with a green field in it."""
    from PIL import Image

    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, :, 0] = np.linspace(0, 255, width)
    pixels[height // 3 : height // 2, width // 4 : width // 2] = (20, 200, 60)
    Image.fromarray(pixels).save(path)


PICTURE_SIZES: dict[str, Any] = {
    **{"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"image_size": 48, "patch_size": 8, "initializer_range": 0.4},
}


def vit(folder: Path) -> Path:
    """A ViT of 6 x 6 patches that tells cats from dogs, with a picture beside it."""
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

    torch.manual_seed(SEED)
    config = ViTConfig(**PICTURE_SIZES, id2label={0: "cat", 1: "dog"}, label2id={"cat": 0, "dog": 1})
    ViTForImageClassification(config).save_pretrained(folder)
    ViTImageProcessorPil(size={"height": 48, "width": 48}).save_pretrained(folder)
    write_picture(folder / "garden.png")
    return folder


def trocr(folder: Path, decoder: Any = None, encoder: Any = None, processor: Any = None) -> Path:
    """One that writes what it sees: a ViT and a decoder of TrOCR, or others, with a picture beside it."""
    import transformers

    fast = make_byte_level(folder, ["<s>", "<pad>", "</s>"], closes=False, bos="<s>", pad="<pad>", eos="</s>")
    fast.save_pretrained(folder)
    sizes = {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 48}
    writes = decoder or transformers.TrOCRConfig(**sizes, max_position_embeddings=24, init_std=0.4)
    writes.vocab_size = len(fast)
    sees = encoder or transformers.ViTConfig(**PICTURE_SIZES)
    torch.manual_seed(SEED)
    model = transformers.VisionEncoderDecoderModel(
        transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(sees, writes)
    )
    for settings in (model.config, model.generation_config):
        settings.decoder_start_token_id, settings.pad_token_id, settings.eos_token_id = 0, 1, 2
    model.save_pretrained(folder)
    (processor or transformers.ViTImageProcessorPil(size={"height": 48, "width": 48})).save_pretrained(folder)
    write_picture(folder / "line.png")
    return folder


FOLDERS: dict[str, Callable[[Path], Path]] = {
    "marian": marian,
    "t5": t5,
    "bart": bart,
    "m2m_100": m2m_100,
    "gpt2": gpt2,
    "llama": llama,
    "chat": chat,
    "bert": bert,
    "whisper": whisper,
    "vit": vit,
    "trocr": trocr,
}


def _word_level(folder: Path, special: list[str], **names: str) -> Any:
    """A tokenizer of whole words that closes a text with its end."""
    from tokenizers.processors import TemplateProcessing

    made = Tokenizer(models.WordLevel(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.train_from_iterator(TEXT, trainers.WordLevelTrainer(special_tokens=special, show_progress=False))
    end = names["eos"]
    made.post_processor = TemplateProcessing(single=f"$A {end}", special_tokens=[(end, special.index(end))])
    return _saved(folder, made, names)


def make_byte_level(folder: Path, special: list[str], closes: bool | None = None, **names: str) -> Any:
    """Byte-level BPE, which puts <s> before a text; it `closes` it with </s> where it has padding, unless told."""
    from tokenizers.processors import TemplateProcessing

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    if "pad" in names if closes is None else closes:
        template, used = "<s> $A </s>", ["<s>", "</s>"]
    elif "<s>" in special:
        template, used = "<s> $A", ["<s>"]
    else:
        return _saved(folder, made, names)
    marks = [(one, special.index(one)) for one in used]
    made.post_processor = TemplateProcessing(single=template, special_tokens=marks)
    return _saved(folder, made, names)


def _saved(folder: Path, made: Tokenizer, names: dict[str, str]) -> Any:
    from transformers import PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_object=made, **{f"{name}_token": token for name, token in names.items()})
    fast.save_pretrained(folder)
    return fast
