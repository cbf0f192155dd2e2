"""How good a checkpoint is: sacreBLEU and chrF with their signatures, by sentence length, and speed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sacrebleu

from ..checkpoint.bleu_scores import Protocol, Score
from ..decoding.beam_search import Stop
from ..language.say import say, to_say
from ..translate import Translator

LENGTHS = ((1, 5), (6, 10), (11, 15), (16, 25), (26, 10_000))
"""Words of the source sentence, both ends included."""


@dataclass(frozen=True)
class Evaluation:
    """Scores of one checkpoint on one test set; :meth:`as_json` is what `--json` prints."""

    checkpoint: str
    beam: int
    protocol: Protocol
    sentences: int
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    by_length: tuple[tuple[str, int, float], ...]
    """(words of the source, sentences, BLEU)"""
    seconds: float
    target_tokens_per_second: float

    def as_json(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "by_length": [dict(zip(("words", "sentences", "bleu"), row, strict=True)) for row in self.by_length],
        }

    def score(self, name: str, step: int | None = None) -> Score:
        """Return the part that is kept beside the checkpoint; `name` is that of the set, `step` that of a snapshot."""
        shared = {field.name for field in dataclasses.fields(Score)} & set(self.__dict__)
        return Score(set=name, step=step, **{field: self.__dict__[field] for field in shared})


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    beam: int = 1,
    protocol: Protocol = "raw",
    stop: Stop = "early",
) -> tuple[Evaluation, list[str]]:
    """Translate and score; returns the translations as well.

    ``raw``: cased sacreBLEU with its own tokenisation (13a, or zh for Chinese). ``tokenized``: both sides lower-cased,
    punctuation-normalised and Moses-tokenised, scored as they are, as published Multi30k tables do.
    """
    if len(sources) != len(references) or not sources:
        raise ValueError(
            say(
                "There are {sources} source lines and {references} reference lines; there must be as many of both, and "
                "one at least.",
                sources=len(sources),
                references=len(references),
            )
        )
    started = time.perf_counter()
    written = translator.translate_batch(sources, beam, stop)
    seconds = time.perf_counter() - started
    tokens = sum(len(ids) for ids in translator.tokenizer.encode_ids(written))
    language, moses = str(translator.card.get("target_language", "en")), protocol == "tokenized"
    if moses:
        scored, against = _moses(written, language), _moses(references, language)
    else:
        scored, against = written, list(references)
    # `force`: text that is tokenized on purpose needs no warning about it.
    metric = sacrebleu.BLEU(tokenize="none" if moses else "zh" if language == "zh" else "13a", force=moses)
    chrf = sacrebleu.CHRF()
    result = Evaluation(
        checkpoint=translator.name,
        beam=beam,
        protocol=protocol,
        sentences=len(sources),
        bleu=round(metric.corpus_score(scored, [against]).score, 2),
        bleu_signature=str(metric.get_signature()),
        chrf=round(chrf.corpus_score(scored, [against]).score, 2),
        chrf_signature=str(chrf.get_signature()),
        by_length=_by_length(metric, sources, scored, against),
        seconds=round(seconds, 1),
        target_tokens_per_second=round(tokens / seconds, 1),
    )
    return result, written


def _by_length(
    metric: sacrebleu.BLEU, sources: Sequence[str], scored: Sequence[str], against: Sequence[str]
) -> tuple[tuple[str, int, float], ...]:
    words = [len(source.split()) for source in sources]
    rows = []
    for low, high in LENGTHS:
        chosen = [i for i, count in enumerate(words) if low <= count <= high]
        if chosen:
            score = metric.corpus_score([scored[i] for i in chosen], [[against[i] for i in chosen]]).score
            rows.append((f"{low} to {high}" if high < 10_000 else f"{low} or more", len(chosen), round(score, 2)))
    return tuple(rows)


def _moses(lines: Sequence[str], language: str) -> list[str]:
    """Lower-case, normalise punctuation, tokenise without escaping: the preparation of Multi30k's published tables."""
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer, tokenizer = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    return [tokenizer.tokenize(normalizer.normalize(line.lower()), return_str=True, escape=False) for line in lines]


def report(result: Evaluation) -> str:
    """The same for people."""
    lines = [
        say(
            "{model} · {sentences} sentences · beam {beam} · {protocol}",
            model=result.checkpoint,
            sentences=result.sentences,
            beam=result.beam,
            protocol=result.protocol,
        ),
        f"BLEU {result.bleu}   {result.bleu_signature}",
        f"chrF {result.chrf}   {result.chrf_signature}",
        say(
            "{tokens} target tokens a second ({seconds} s)",
            tokens=result.target_tokens_per_second,
            seconds=result.seconds,
        ),
    ]
    by_length = to_say("{words} words: BLEU {bleu} ({count} sentences)")
    lines += [f"  {say(by_length, words=words, bleu=bleu, count=count)}" for words, count, bleu in result.by_length]
    return "\n".join(lines)
