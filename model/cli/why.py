"""`python -m model why` and `python -m model attribution`: what a word rests on, and which method to trust."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence

from ..analysis.heads import head_name
from ..attribution.any_model import (
    ANY_MODEL_METHODS,
    attribute_any_model,
    attribute_available_methods,
    run_attention_pass,
)
from ..attribution.logit import LogitParts, split_logit
from ..attribution.methods import (
    ATTENTION_X_GRADIENT_METHOD,
    ATTRIBUTION_METHODS,
    DEFAULT_METHOD,
    Attribution,
    attribute_target,
    compute_target_value,
    record_target_pass,
    require_nonzero_target_probability,
)
from ..attribution.target import AttributionError, Target, make_word_target
from ..checkpoint.load import find_checkpoint_folder
from ..devices import choose_device, limit_to_one_thread
from ..evaluation.attribution import (
    ATTRIBUTION_FILE,
    FEWEST_SENTENCES,
    format_attribution_table,
    measure_attribution,
    write_attribution_scores,
)
from ..experiments.ablation import WordWithoutHeads, ablate_heads_for_word
from ..interventions.apply import apply_changes
from ..interventions.changes import parse_changes
from ..language import SOURCE_LANGUAGE, format_number, join_items, join_sentences, say, say_many, use_language
from ..runnable_model import LocalModel, RunnableModel
from ..translate import Translator
from ..user_model import load_user_model
from .translate_and_evaluate import (
    add_checkpoint_and_device_arguments,
    add_parallel_text_arguments,
    check_writable,
    format_table,
    load_parallel_text_pairs,
)

WordExplanation = Attribution | LogitParts | WordWithoutHeads
BAR_LENGTH = 24  # characters of the longest bar
_ALL_METHODS = ATTRIBUTION_METHODS | ATTENTION_X_GRADIENT_METHOD
PARTS_SHOWN = 20  # parts printed without --json


def add_why_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sentence")
    parser.add_argument("--word", type=int, required=True, help=say("word of the translation, from 1"))
    parser.add_argument("--against", metavar="Y", help=say("explain logit X - logit Y instead of log p(X)"))
    parser.add_argument(
        "--method",
        choices=[*_ALL_METHODS, "heads", "heads-off", "all"],
        default=DEFAULT_METHOD,
        metavar="NAME",
        help=say(
            "any of {methods}, heads, heads-off, all (default {default})",
            methods=join_items(_ALL_METHODS),
            default=DEFAULT_METHOD,
        ),
    )
    parser.add_argument("--json", action="store_true", help=say("print JSON"))
    parser.add_argument(
        "--given", metavar="TRANSLATION", help=say("explain a word of this translation, not of the model's")
    )
    parser.add_argument("--changes", default="", help=say("heads or masks changed, as in a link: cross.2.3:off, ..."))
    add_checkpoint_and_device_arguments(parser)
    parser.add_argument(
        "--model",
        metavar="MODULE:FACTORY, hf:FOLDER",
        help=say("a model of your own instead of a checkpoint"),
    )


def run_why(arguments: argparse.Namespace) -> int:
    """Print what the word rests on."""
    limit_to_one_thread()
    changes = parse_changes(arguments.changes)
    translator: RunnableModel | LocalModel
    if arguments.model:
        translator = load_user_model(arguments.model)
    else:
        translator = Translator.load(arguments.checkpoint, choose_device(arguments.device))
    if isinstance(translator, LocalModel):
        return _explain_local_model_word(translator, arguments)
    if not translator.can("attribution"):
        raise AttributionError(translator.cannot("attribution"))
    with apply_changes(translator.model, changes):
        if arguments.given:
            translation = translator.force(arguments.sentence, arguments.given, capture=False)
        else:
            translation = translator.translate(arguments.sentence, capture=False)
        target = make_word_target(translator, translation, arguments.word, arguments.against)
        found, refused = _explain_target(translator, target, arguments.method)
    if arguments.json:
        answers = [one.as_json() | ({"not_computed": refused} if refused else {}) for one in found]
        print(json.dumps(answers if arguments.method == "all" else answers[0], ensure_ascii=False))
        return 0
    print(f"{translation.text}\n")
    print(_format_target_value_heading(target, compute_target_value(translator.model, target)))
    for one in found:
        print()
        print("\n".join(_explanation_lines(one)))
    if refused:
        print(f"\n{refused}")
    return 0


def add_attribution_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    add_parallel_text_arguments(parser)
    parser.add_argument(
        "--sentences", type=int, default=200, help=say("how many sentences (default {default})", default=200)
    )


def run_attribution(arguments: argparse.Namespace) -> int:
    """Measure the methods and the threshold of a checkpoint; write both beside it, and into its card."""
    folder = find_checkpoint_folder(arguments.checkpoint)
    check_writable(folder / ATTRIBUTION_FILE)
    if arguments.sentences < FEWEST_SENTENCES:
        raise ValueError(
            say(
                "--sentences is {sentences}; it must be at least {least}.",
                sentences=arguments.sentences,
                least=FEWEST_SENTENCES,
            )
        )
    translator = Translator.load(arguments.checkpoint, choose_device(arguments.device))
    scores = measure_attribution(translator, *load_parallel_text_pairs(arguments, translator), arguments.sentences)
    with use_language(SOURCE_LANGUAGE):
        write_attribution_scores(folder, scores)
    print(format_attribution_table(scores), end="")
    print(say("Wrote {path}", path=folder / ATTRIBUTION_FILE))
    return 0


def _explain_target(translator: RunnableModel, target: Target, method: str) -> tuple[list[WordExplanation], str]:
    """Return what one method or all of them say, and why some of all cannot be computed."""
    require_nonzero_target_probability(target, compute_target_value(translator.model, target))
    if method == "heads-off":
        return [ablate_heads_for_word(translator.model, target)], ""
    if method not in ("all", "heads"):
        seen = run_attention_pass(translator.model, target.source_ids, target.input_ids)
        return [attribute_target(translator, target, method, seen)], ""
    scores, refused = attribute_available_methods(translator, target) if method == "all" else ({}, "")
    if isinstance(translator, Translator):
        model = translator.model
        return [*scores.values(), split_logit(model, target, record_target_pass(model, target))], refused
    if method == "heads":
        raise AttributionError(translator.cannot("parts"))
    return [*scores.values()], join_sentences(refused, translator.cannot("parts"))


def _explanation_lines(found: WordExplanation) -> list[str]:
    if isinstance(found, LogitParts):
        return _logit_part_lines(found)
    return _format_head_effect_lines(found) if isinstance(found, WordWithoutHeads) else _attribution_lines(found)


def _format_target_value_heading(target: Target, value: float) -> str:
    what = f"log p({target.word})" if target.against is None else f"logit {target.word} - logit {target.against}"
    return "\n".join([f"{what} = {format_number(value, '.4f')}", *target.notes])


def _attribution_lines(found: Attribution, meanings: Mapping[str, str] = _ALL_METHODS) -> list[str]:
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
        [side, piece.strip(), format_number(score, ".4f"), _bar_text(score, longest)]
        for side, pieces, scores in sides
        for piece, score in zip(pieces, scores.tolist(), strict=False)
    ]
    return [*lines, *_bar_table_lines(rows)]


def _logit_part_lines(found: LogitParts) -> list[str]:
    parts = found.parts_by_size[:PARTS_SHOWN]
    rows = [
        [one.part.name, format_number(one.score, ".4f"), _bar_text(one.score, abs(parts[0].score))] for one in parts
    ]
    rest = found.parts_by_size[PARTS_SHOWN:]
    if rest:
        smaller = say_many("{count} smaller part", "{count} smaller parts", len(rest))
        rows.append([smaller, format_number(sum(one.score for one in rest), ".4f"), ""])
    rows += [[say("sum"), format_number(found.sum, ".4f"), ""], [say("logit"), format_number(found.logit, ".4f"), ""]]
    return [f"{say('heads')}: {found.exactness}", *_bar_table_lines(rows)]


def _format_head_effect_lines(found: WordWithoutHeads) -> list[str]:
    heads = found.effects.strongest()[:PARTS_SHOWN]
    rows = [
        [head_name(head), format_number(-change, ".4f"), _bar_text(-change, abs(heads[0][1]))] for head, change in heads
    ]
    return [say("heads-off: how far the value falls without each head, the largest first"), *_bar_table_lines(rows)]


def _bar_table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows that end with a number and a bar."""
    lines = format_table([row[:-1] for row in rows], texts=len(rows[0]) - 2) if rows else []
    return [f"  {line}  {row[-1]}".rstrip() for line, row in zip(lines, rows, strict=True)]


def _bar_text(score: float, longest: float) -> str:
    return ("-" if score < 0 else "+") * round(BAR_LENGTH * abs(score) / max(longest, 1e-12))


def _explain_local_model_word(model: LocalModel, arguments: argparse.Namespace) -> int:
    if arguments.changes or arguments.given or arguments.against:
        raise ValueError(say("A model of your own takes neither --changes nor --given nor --against."))
    answers, missing = attribute_any_model(model, arguments.sentence, arguments.word, arguments.method)
    if arguments.json:
        found = [one.as_json() | {"not_computed": missing} for one in answers]
        print(json.dumps(found if arguments.method == "all" else found[0], ensure_ascii=False))
        return 0
    print(_format_target_value_heading(answers[0].target, answers[0].target_value))
    for one in answers:
        print()
        print("\n".join(_attribution_lines(one, ANY_MODEL_METHODS)))
    print(f"\n{missing}")
    return 0
