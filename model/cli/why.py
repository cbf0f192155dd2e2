"""`python -m model why` and `python -m model attribution`: what a word rests on, and which method to trust."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence

from ..attribution.foreign import COMPUTED, foreign_attributions
from ..attribution.foreign.live import attributions, see
from ..attribution.logit_parts import LogitParts, logit_parts
from ..attribution.methods import (
    ATTENTION_X_GRADIENT,
    DEFAULT_METHOD,
    METHODS,
    Attribution,
    attribute,
    check_value,
    record_target,
    target_value,
)
from ..attribution.target import AttributionError, Target, target_word
from ..checkpoint.files import folder_of
from ..devices import chosen_device, one_thread_each
from ..evaluation.attribution_measurement import measure
from ..evaluation.attribution_scores import FILE, table, write_scores
from ..experiments.head_effects import WordWithoutHeads, word_without_heads
from ..heads.names import head_name
from ..interventions.apply import intervening
from ..interventions.changes import parse
from ..language.catalogue import SOURCE
from ..language.current import speaking
from ..language.say import listed, number, say, say_many, sentences
from ..live.live_model import LiveModel
from ..translate import Translator
from ..user_model import LocalModel, load
from .columns import table as table_lines
from .use import add_common, add_text, named_text
from .writable import check_writable

Answer = Attribution | LogitParts | WordWithoutHeads
BAR = 24  # characters of the longest bar
_EVERY = METHODS | ATTENTION_X_GRADIENT
LARGEST = 20  # parts printed without --json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sentence")
    parser.add_argument("--word", type=int, required=True, help=say("word of the translation, from 1"))
    parser.add_argument("--against", metavar="Y", help=say("explain logit X - logit Y instead of log p(X)"))
    parser.add_argument(
        "--method",
        choices=[*_EVERY, "heads", "heads-off", "all"],
        default=DEFAULT_METHOD,
        metavar="NAME",
        help=say(
            "any of {methods}, heads, heads-off, all (default {default})",
            methods=listed(_EVERY),
            default=DEFAULT_METHOD,
        ),
    )
    parser.add_argument("--json", action="store_true", help=say("print JSON"))
    parser.add_argument(
        "--given", metavar="TRANSLATION", help=say("explain a word of this translation, not of the model's")
    )
    parser.add_argument("--changes", default="", help=say("heads or masks changed, as in a link: cross.2.3:off, ..."))
    add_common(parser)
    parser.add_argument(
        "--model",
        metavar="MODULE:FACTORY, hf:FOLDER",
        help=say("a model of your own instead of a checkpoint"),
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what the word rests on."""
    one_thread_each()
    changes = parse(arguments.changes)
    translator: LiveModel | LocalModel
    if arguments.model:
        translator = load(arguments.model)
    else:
        translator = Translator.load(arguments.checkpoint, chosen_device(arguments.device))
    if isinstance(translator, LocalModel):
        return _run_foreign(translator, arguments)
    if not translator.can("attribution"):
        raise AttributionError(translator.cannot("attribution"))
    with intervening(translator.model, changes):
        if arguments.given:
            translation = translator.force(arguments.sentence, arguments.given, capture=False)
        else:
            translation = translator.translate(arguments.sentence, capture=False)
        target = target_word(translator, translation, arguments.word, arguments.against)
        found, refused = _explained(translator, target, arguments.method)
    if arguments.json:
        answers = [one.as_json() | ({"not_computed": refused} if refused else {}) for one in found]
        print(json.dumps(answers if arguments.method == "all" else answers[0], ensure_ascii=False))
        return 0
    print(f"{translation.text}\n")
    print(_heading(target, target_value(translator.model, target)))
    for one in found:
        print()
        print("\n".join(_in_lines(one)))
    if refused:
        print(f"\n{refused}")
    return 0


def add_measure(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    add_text(parser)
    parser.add_argument(
        "--sentences", type=int, default=200, help=say("how many sentences (default {default})", default=200)
    )


def run_measure(arguments: argparse.Namespace) -> int:
    """Measure the methods and the threshold of a checkpoint; write both beside it, and into its card."""
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / FILE)
    translator = Translator.load(arguments.checkpoint, chosen_device(arguments.device))
    scores = measure(translator, *named_text(arguments, translator), arguments.sentences)
    with speaking(SOURCE):
        write_scores(folder, scores)
    print(table(scores), end="")
    print(say("Wrote {path}", path=folder / FILE))
    return 0


def _explained(translator: LiveModel, target: Target, method: str) -> tuple[list[Answer], str]:
    """What one method or all of them say, and why others of all cannot."""
    check_value(target, target_value(translator.model, target))
    if method == "heads-off":
        return [word_without_heads(translator.model, target)], ""
    if method not in ("all", "heads"):
        seen = see(translator.model, target.source_ids, target.input_ids)
        return [attribute(translator, target, method, seen)], ""
    scores, refused = attributions(translator, target) if method == "all" else ({}, "")
    if isinstance(translator, Translator):
        model = translator.model
        return [*scores.values(), logit_parts(model, target, record_target(model, target))], refused
    if method == "heads":
        raise AttributionError(translator.cannot("parts"))
    return [*scores.values()], sentences(refused, translator.cannot("parts"))


def _in_lines(found: Answer) -> list[str]:
    if isinstance(found, LogitParts):
        return _logit_lines(found)
    return _fall_lines(found) if isinstance(found, WordWithoutHeads) else _lines(found)


def _heading(target: Target, value: float) -> str:
    what = f"log p({target.word})" if target.against is None else f"logit {target.word} - logit {target.against}"
    return "\n".join([f"{what} = {number(value, '.4f')}", *target.notes])


def _lines(found: Attribution, meanings: Mapping[str, str] = _EVERY) -> list[str]:
    lines = [f"{found.method}: {say(meanings[found.method])}"]
    if found.completeness_error is not None:
        lines.append(
            say(
                "completeness error {error:.2%}, baseline: {baseline}",
                error=found.completeness_error,
                baseline=found.baseline,
            )
        )
    longest = max(abs(found.scores).max(), 1e-12)
    sides = (
        (say("source"), found.target.source_tokens, found.source),
        (say("prefix"), found.target.prefix_tokens, found.prefix),
    )
    rows = [
        [side, piece.strip(), number(score, ".4f"), _bar(score, longest)]
        for side, pieces, scores in sides
        for piece, score in zip(pieces, scores.tolist(), strict=False)
    ]
    return [*lines, *_columns(rows)]


def _logit_lines(found: LogitParts) -> list[str]:
    parts = found.sorted[:LARGEST]
    rows = [[one.part.name, number(one.score, ".4f"), _bar(one.score, abs(parts[0].score))] for one in parts]
    rest = found.sorted[LARGEST:]
    if rest:
        smaller = say_many("{count} smaller part", "{count} smaller parts", len(rest))
        rows.append([smaller, number(sum(one.score for one in rest), ".4f"), ""])
    rows += [[say("sum"), number(found.sum, ".4f"), ""], [say("logit"), number(found.logit, ".4f"), ""]]
    return [f"{say('heads')}: {found.exactness}", *_columns(rows)]


def _fall_lines(found: WordWithoutHeads) -> list[str]:
    heads = found.effects.strongest()[:LARGEST]
    rows = [[head_name(head), number(-change, ".4f"), _bar(-change, abs(heads[0][1]))] for head, change in heads]
    return [say("heads-off: how far the value falls without each head, the largest first"), *_columns(rows)]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows that end with a number and a bar."""
    lines = table_lines([row[:-1] for row in rows], texts=len(rows[0]) - 2) if rows else []
    return [f"  {line}  {row[-1]}".rstrip() for line, row in zip(lines, rows, strict=True)]


def _bar(score: float, longest: float) -> str:
    return ("-" if score < 0 else "+") * round(BAR * abs(score) / max(longest, 1e-12))


def _run_foreign(model: LocalModel, arguments: argparse.Namespace) -> int:
    if arguments.changes or arguments.given or arguments.against:
        raise ValueError(say("A model of your own takes neither --changes nor --given nor --against."))
    answers, missing = foreign_attributions(model, arguments.sentence, arguments.word, arguments.method)
    if arguments.json:
        found = [one.as_json() | {"not_computed": missing} for one in answers]
        print(json.dumps(found if arguments.method == "all" else found[0], ensure_ascii=False))
        return 0
    print(_heading(answers[0].target, answers[0].target_value))
    for one in answers:
        print()
        print("\n".join(_lines(one, COMPUTED)))
    print(f"\n{missing}")
    return 0
