"""`python -m model check`: every model on every device of this machine, held against the CPU."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch

from ..checkpoint.load import FOLDER, available
from ..devices import available_devices, chosen_device, one_thread_each
from ..evaluation.device_check import DeviceCheck, check_device
from ..language.say import listed, number, say, to_say
from ..translate import Translator
from .columns import left

SENTENCES = 12
HEAD = (
    to_say("model"),
    to_say("device"),
    to_say("same texts"),
    to_say("log-probs"),
    to_say("weights"),
    to_say("looking"),
    to_say("tokens/s"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help=say("check this one alone (default: the GPU when there is one, else the CPU)"))
    parser.add_argument(
        "--checkpoint", action="append", metavar="NAME", help=say("check this one alone; may be repeated")
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the devices and a table; 1 where a model on a device is not what it is on the CPU."""
    device = chosen_device(arguments.device)
    one_thread_each()
    print(
        say(
            "torch {version}; devices: {devices}. Checked: {device}.",
            version=torch.__version__,
            devices=listed(map(_described, available_devices())),
            device=device,
        )
    )
    print()
    print(_line((*map(say, HEAD), "MiB", "")))
    found = []
    for check in _checks(arguments.checkpoint or available(), device):
        found.append(check)
        print(_line(_cells(check)), flush=True)
    faulty = [one for one in found if one.faults]
    print()
    print(
        say(
            "{same} of {models} models are on {device} what they are on the CPU.",
            same=len(found) - len(faulty),
            models=len(found),
            device=device,
        )
    )
    return 1 if faulty else 0


def _checks(names: list[str], device: torch.device) -> Iterator[DeviceCheck]:
    for name in names:
        cpu = Translator.load(name, "cpu")
        yield check_device(cpu, Translator.load(name, device), _sentences(cpu))


def _sentences(translator: Translator) -> list[str]:
    """Some of the fixed sentences of the model's language, or else its card's examples."""
    path = FOLDER / f"sentences.{translator.card.get('source_language', '')}"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    examples = translator.card.get("examples") or []
    texts = lines or ([examples] if isinstance(examples, str) else list(examples))
    return texts[:: max(1, len(texts) // SENTENCES)][:SENTENCES]


def _described(device: str) -> str:
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.startswith("cuda") else device


def _cells(check: DeviceCheck) -> tuple[str, ...]:
    looking = (
        say("unchanged")
        if check.observer.difference == 0
        else f"{check.observer.path}, {number(check.observer.difference, '.0e')}"
    )
    same = say("{same} of {sentences}", same=check.same, sentences=check.sentences)
    numbers = (number(check.log_probs, ".0e"), number(check.weights, ".0e"), looking)
    speed = (number(check.tokens_per_second, ",.0f"), number(check.memory / 2**20, ".0f"))
    return check.model, check.device, same, *numbers, *speed, "; ".join(check.faults) or say("ok")


def _line(cells: tuple[str, ...]) -> str:
    widths = (18, 7, 10, 9, 8, 12, 8, 5, 2)
    return "  ".join(left(cell, places) for cell, places in zip(cells, widths, strict=True)).rstrip()
