"""``python -m model diagnose FILE...``: a verdict for each file, for people or one JSON object a line.

A verdict is ``sound`` or ``faulty`` where what was meant is known, ``question`` where something would be wrong if a
guess of it is right, and ``open`` where nothing contradicts and nobody said what was meant, or padding was named and
nothing says which keys it is. Exit code 1 when a file is faulty, 2 when one cannot be read, else 0; 2 wins, and the
others are still answered.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TextIO

from ..language import join_items, say, to_say
from ..masks.array_normalisation import normalise_arrays
from ..masks.arrays import DiagnosisError, assign_roles
from ..masks.diagnosis_checks import convert_cu_seqlens_to_meant, diagnose_arrays, diagnose_document_positions
from ..masks.findings import Diagnosis, Finding, Verdict, add_attention_calls
from ..masks.fixes import APIS, Api, write_fixes_for_api
from ..masks.index_ranges import format_key_ranges, format_query_ranges
from ..masks.read_files import FILE_ENDINGS, MapContents, read_array_file
from ..masks.rule import hides_future, parse_meaning, simpler_meanings_text
from ..masks.structure import STRUCTURE_WORDS

FileVerdict = Verdict | Literal["unreadable"]
EXIT_CODES: dict[FileVerdict, int] = {"sound": 0, "open": 0, "question": 0, "faulty": 1, "unreadable": 2}
VERDICTS_WORST_FIRST: tuple[Verdict, ...] = ("faulty", "question", "open", "sound")
VERDICT_WORDS: dict[FileVerdict, str] = {
    "sound": to_say("sound"),
    "open": to_say(
        "no contradiction; what was meant? say it with --meant: causal, padding, window:W, prefix:N, "
        "packed:N,N,..., joined by +"
    ),
    "question": to_say(
        "a question: something is wrong if the guess of what was meant is right; say it with --meant: causal, "
        "padding, window:W, prefix:N, packed:N,N,..., joined by +"
    ),
    "faulty": to_say("faulty"),
    "unreadable": to_say("unreadable"),
}
"""The verdicts in words."""


@dataclass(frozen=True)
class FileDiagnosis:
    """The verdict on one file, with its reasons."""

    file: str
    verdict: FileVerdict
    diagnoses: tuple[Diagnosis, ...] = ()
    reason: str = ""
    """Why it could not be read."""
    notes: tuple[str, ...] = ()
    """What was not read or not applied, a sentence each."""

    @property
    def findings(self) -> list[Finding]:
        """The findings of all its maps."""
        return [finding for diagnosis in self.diagnoses for finding in diagnosis.findings]

    def as_json(self) -> str:
        """Return the answer as one line of JSON."""
        findings = [finding.as_dict() for finding in self.findings]
        answer = {"file": self.file, "verdict": self.verdict, "findings": findings}
        more = {"reason": self.reason, "notes": list(self.notes)}
        return json.dumps(answer | {name: value for name, value in more.items() if value})


def add_diagnose_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``diagnose``."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help=say("{endings}, or a saved trace", endings=join_items(FILE_ENDINGS))
    )
    parser.add_argument(
        "--meant",
        metavar="KIND",
        help=say(
            "what was meant: {meanings}, joined by + or and; layers in turn by /", meanings=join_items(STRUCTURE_WORDS)
        ),
    )
    parser.add_argument("--api", choices=APIS, help=say("the interface in which fixes are to be written"))
    parser.add_argument("--json", action="store_true", help=say("one JSON object a line, in the order of the files"))


def run_diagnose(args: argparse.Namespace, out: TextIO | None = None) -> int:
    """Print the answer for every file; return the exit code."""
    out = sys.stdout if out is None else out
    if args.meant is not None:
        try:
            parse_meaning(args.meant)
        except ValueError as error:
            print(f"--meant: {error}", file=sys.stderr)
            return 2
    worst = 0
    for file in args.files:
        answer = diagnose_file(file, args.meant, args.api)
        print(answer.as_json() if args.json else _diagnosis_text(answer), file=out)
        worst = max(worst, EXIT_CODES[answer.verdict])
    return worst


def diagnose_file(file: str, meant: str | None = None, api: Api | None = None) -> FileDiagnosis:
    """Return the answer for one file, with fixes for ``api``; nothing in it makes this raise.

    In a trace with a decoder a causal ``meant`` is that of the decoder alone, any other that of all maps.
    """
    try:
        contents = read_array_file(file)
        meanings = [_choose_intended_mask(one.map, [other.map for other in contents], meant) for one in contents]
        diagnoses = tuple(_diagnose_contents(one, name, api) for one, name in zip(contents, meanings, strict=True))
    except DiagnosisError as error:
        return FileDiagnosis(file, "unreadable", reason=str(error))
    except ValueError as error:
        return FileDiagnosis(
            file, "unreadable", reason=say("The arrays in this file cannot be judged: {error}.", error=error)
        )
    verdicts = {one.verdict for one in diagnoses}
    verdict = next(one for one in VERDICTS_WORST_FIRST if one in verdicts)
    left = [one.map for one, name in zip(contents, meanings, strict=True) if meant is not None and name is None]
    notes = list(dict.fromkeys(note for one in contents for note in one.notes))
    notes += _describe_simpler_intended_masks(diagnoses, meanings)
    if left:
        notes += [
            say("--meant {meant} was taken for the decoder, not for: {maps}.", meant=meant, maps=join_items(left))
        ]
    return FileDiagnosis(file, verdict, diagnoses, notes=tuple(notes))


def _diagnose_contents(contents: MapContents, meant: str | None, api: Api | None) -> Diagnosis:
    named, blocks = assign_roles(contents.arrays, meant)
    if (documents := diagnose_document_positions(named)) is not None:
        return documents
    named, meant = convert_cu_seqlens_to_meant(named, meant)
    diagnosis = add_attention_calls(
        diagnose_arrays(normalise_arrays(named, contents.map, blocks), meant), contents.calls
    )
    return diagnosis if api is None else write_fixes_for_api(diagnosis, api)


def _describe_simpler_intended_masks(diagnoses: Sequence[Diagnosis], meanings: Sequence[str | None]) -> list[str]:
    """Return a sentence for each meaning that is a simpler one at the sizes of its map."""
    said = [
        simpler_meanings_text(name, *one.meant.shape[-2:])
        for one, name in zip(diagnoses, meanings, strict=True)
        if name is not None and one.meant is not None
    ]
    return list(dict.fromkeys(filter(None, said)))


def _choose_intended_mask(kind: str, kinds: list[str], meant: str | None) -> str | None:
    """Return what is meant for the map of this kind, among those of its file."""
    if meant is None or kind == "decoder" or not hides_future(meant):
        return meant
    return None if "decoder" in kinds or kind == "cross" else meant


def _finding_lines(one: Finding) -> list[str]:
    where = [f"    {say('where: {origin}', origin=one.origin)}"] if one.origin else []
    if one.severity != "info" and one.queries and one.keys:
        at = say("{queries}, {keys}", queries=format_query_ranges(one.queries), keys=format_key_ranges(one.keys))
        where.insert(0, f"    {say('at: {places}', places=at)}")
    return [f"  {one.rank}: {one.code}: {one.message}", *where, f"    {say('fix: {fix}', fix=one.fix)}"]


def _diagnosis_text(answer: FileDiagnosis) -> str:
    """Return text for people: the verdict, the findings with their fixes, what was assumed, what could not be told."""
    verdict = say(VERDICT_WORDS[answer.verdict])
    left_open = [one for one in answer.diagnoses if one.verdict == "open"]
    if answer.verdict == "open" and all(one.padding_unknown for one in left_open):
        verdict = say("no contradiction, but nothing says which keys are padding: give key_keep, True = a real token")
    lines = [f"{answer.file}: {verdict}: {answer.reason}" if answer.reason else f"{answer.file}: {verdict}"]
    lines += [f"  {note}" for note in answer.notes]
    for diagnosis in answer.diagnoses:
        meaning, sure = diagnosis.meaning, diagnosis.sure
        guessed = say("taken to be meant: {meaning} ({sure:.0%} sure)", meaning=meaning, sure=sure)
        told = diagnosis.stated and diagnosis.meant is not None
        lines += [f"  {say('meant: {meaning}', meaning=meaning) if told else guessed}"]
        lines += [line for one in diagnosis.findings for line in _finding_lines(one)]
        if diagnosis.unknown:
            lines += [f"  {say('cannot tell: {faults}', faults=join_items(one.text for one in diagnosis.unknown))}"]
    return "\n".join(lines)
