"""``python -m model mask --model hf:FOLDER TEXT``: the mask of every kind of layer of an architecture, without weights.

Exit code 1 where one is not what the configuration says, 2 where the folder cannot be read.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

from ..hugging_face.folder import FOLDER_PREFIX
from ..hugging_face.masks import (
    KERNELS,
    ArchitectureMasks,
    LayerMask,
    read_architecture_masks,
)
from ..language import SOURCE_LANGUAGE, join_items, say, use_language
from ..masks.index_ranges import format_index_ranges
from ..masks.rule import simpler_meanings_text

MAX_DRAWN_TOKENS = 40
"""Most rows and columns of a mask that is drawn in squares."""


def add_mask_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mask``."""
    parser.add_argument("text", help=say("the text; <image> and <audio> stand for a token of an image or of sound"))
    parser.add_argument(
        "--model", required=True, metavar="hf:FOLDER", help=say("a folder with a config.json; weights are not needed")
    )
    parser.add_argument("--kernel", action="append", choices=KERNELS, help=say("one of the kernels; left out, all"))
    parser.add_argument("--json", action="store_true", help=say("print JSON"))


def run_mask(arguments: argparse.Namespace) -> int:
    """Print the masks; return the exit code."""
    warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
    folder = Path(arguments.model.removeprefix(FOLDER_PREFIX)).expanduser()
    kernels = tuple(arguments.kernel or KERNELS)
    if arguments.json:
        with use_language(SOURCE_LANGUAGE):
            found = read_architecture_masks(folder, arguments.text, kernels)
            print(json.dumps(_build_mask_json(found), ensure_ascii=False))
    else:
        found = read_architecture_masks(folder, arguments.text, kernels)
        print(_describe_masks(found))
    return int(any(one.diagnosis is not None and one.diagnosis.verdict == "faulty" for one in found.masks))


def _build_mask_json(found: ArchitectureMasks) -> dict[str, Any]:
    return {
        "model": found.model,
        "tokens": list(found.tokens),
        "masks": [
            {
                "map": one.map,
                "kind": one.layer_kind,
                "layers": list(one.layers),
                "kernels": list(one.kernels),
                "mask": one.allowed.astype(int).tolist(),
                "words": one.words,
                "meant": one.meant,
                "verdict": one.diagnosis.verdict if one.diagnosis else "open",
                "findings": [finding.as_dict() for finding in one.diagnosis.findings] if one.diagnosis else [],
            }
            for one in found.masks
        ],
        "left_out": dict(found.left_out),
    }


def _describe_masks(found: ArchitectureMasks) -> str:
    lines = [say("{model}, {count} tokens, random weights", model=found.model, count=len(found.tokens))]
    for one in found.masks:
        lines += ["", *_mask_lines(one, found.tokens)]
    lines += [say("Not by {kernel}: {reason}", kernel=kernel, reason=why) for kernel, why in found.left_out.items()]
    return "\n".join(lines)


def _mask_lines(one: LayerMask, tokens: tuple[str, ...]) -> list[str]:
    """Return the heading of a mask, its verdict, and its picture where that is small."""
    place = {"map": one.map, "layers": format_index_ranges(one.layers), "kernels": join_items(one.kernels)}
    heading = say("{map}, layers {layers}, by {kernels}", **place)
    if one.layer_kind:
        heading = say("{map}, {kind}, layers {layers}, by {kernels}", kind=one.layer_kind, **place)
    queries, keys = one.allowed.shape
    lines = [
        heading,
        f"  {say('in force: {mask}', mask=one.words)}",
        f"  {say('meant: {meant}', meant=one.meant)}",
        *(f"  {line}" for line in filter(None, [simpler_meanings_text(one.meant, queries, keys)])),
    ]
    if one.diagnosis is not None:
        lines += [f"  {finding.rank}: {finding.code}: {finding.message}" for finding in one.diagnosis.findings]
    if max(queries, keys) > MAX_DRAWN_TOKENS:
        return lines
    names = tokens if len(tokens) == queries else tuple(map(str, range(1, queries + 1)))
    width = max(map(len, names))
    rows = zip(names, one.allowed, strict=True)
    return lines + [f"  {name.rjust(width)} {' '.join('■' if cell else '⬚' for cell in row)}" for name, row in rows]
