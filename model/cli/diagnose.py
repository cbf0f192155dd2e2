"""``python -m model diagnose FILE...``: a verdict for each file, for people or one JSON object a line.

Exit code 0 when every file is sound, 1 when one is faulty, 2 when one cannot be read; 2 wins, and the others are
still answered.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import Literal, TextIO

from ..diagnosis import Diagnosis, DiagnosisError, Finding, arrange, judge
from ..diagnosis.readers.files import ENDINGS, Contents, read
from ..masking.structure_names import parse_structure

Verdict = Literal["sound", "faulty", "unreadable"]
EXIT: dict[Verdict, int] = {"sound": 0, "faulty": 1, "unreadable": 2}


@dataclass(frozen=True)
class Answer:
    """The verdict on one file, with its reasons."""

    file: str
    verdict: Verdict
    diagnoses: tuple[Diagnosis, ...] = ()
    reason: str = ""
    """Why it could not be read."""

    @property
    def findings(self) -> list[Finding]:
        """The findings of all its maps."""
        return [finding for diagnosis in self.diagnoses for finding in diagnosis.findings]

    def as_json(self) -> str:
        """Return the answer as one line of JSON."""
        findings = [finding.as_dict() for finding in self.findings]
        answer = {"file": self.file, "verdict": self.verdict, "findings": findings}
        return json.dumps(answer | ({"reason": self.reason} if self.reason else {}))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``diagnose``."""
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"{', '.join(ENDINGS)}, or a saved trace")
    parser.add_argument(
        "--meant",
        metavar="KIND",
        help="what was meant: causal, padding, full, window:W, prefix:N, packed:N,N,... or several joined by +",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line, in the order of the files")


def run(args: argparse.Namespace, out: TextIO | None = None) -> int:
    """Print the answer for every file; return the exit code."""
    out = sys.stdout if out is None else out
    if args.meant is not None:
        try:
            parse_structure(args.meant)
        except ValueError as error:
            print(f"--meant: {error}", file=sys.stderr)
            return 2
    worst = 0
    for file in args.files:
        answer = diagnose_file(file, args.meant)
        print(answer.as_json() if args.json else _text(answer), file=out)
        worst = max(worst, EXIT[answer.verdict])
    return worst


def diagnose_file(file: str, meant: str | None = None) -> Answer:
    """Return the answer for one file; nothing in it makes this raise.

    In a trace a causal ``meant`` is that of the decoder alone, any other that of all maps.
    """
    try:
        diagnoses = tuple(judge(arrange(one.arrays, one.map), _meant_for(one, meant)) for one in read(file))
    except DiagnosisError as error:
        return Answer(file, "unreadable", reason=str(error))
    except ValueError as error:
        return Answer(file, "unreadable", reason=f"The arrays in this file cannot be judged: {error}.")
    return Answer(file, "sound" if all(one.sound for one in diagnoses) else "faulty", diagnoses)


def _meant_for(contents: Contents, meant: str | None) -> str | None:
    if meant is None or not contents.map:
        return meant
    return meant if contents.map == "decoder" or not parse_structure(meant).causal else None


def _text(answer: Answer) -> str:
    """Return text for people: the verdict, the findings with their fixes, what was assumed, what could not be told."""
    lines = [f"{answer.file}: {answer.verdict}" + (f": {answer.reason}" if answer.reason else "")]
    for diagnosis in answer.diagnoses:
        lines += [f"  taken to be meant: {diagnosis.meaning} ({diagnosis.sure:.0%} sure)"]
        lines += [f"  {one.severity}: {one.code}: {one.message}\n    fix: {one.fix}" for one in diagnosis.findings]
        lines += [f"  {one.message}" for one in diagnosis.unknown]
    return "\n".join(lines)
