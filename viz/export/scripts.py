"""The project's JavaScript as it stands in a file: modules joined into one expression, and their hash."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from ..components.bundle import HERE, bundle

EXPORT = re.compile(r"^export (default )?", re.MULTILINE)
DEFAULT = re.compile(r"^export default (?:async )?function (\w+)", re.MULTILINE)


def component_code(names: Iterable[str]) -> str:
    """The components a file shows, each in a scope of its own, as members of one constant."""
    return "const components = {};\n" + "".join(
        f"components.{name} = {scoped(HERE / name / f'{name}.js')};\n" for name in names
    )


def scoped(entry: Path) -> str:
    """The modules of `entry` as an expression: its default export."""
    source = bundle(entry)
    if "</script" in source.lower():
        raise ValueError("A script of the project holds the text </script and cannot stand in a page.")
    name = DEFAULT.findall(source)[-1]
    return f"(() => {{\n{EXPORT.sub('', source)}\nreturn {name};\n}})()"


def hash_of(code: str) -> str:
    """A script's hash, as a security policy names it."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
