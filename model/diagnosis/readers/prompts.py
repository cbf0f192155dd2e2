"""What stands around a printed tensor: prompts of a debugger or a notebook, a name before it; and code in its place."""

from __future__ import annotations

import re

# Possessive repetitions, so that a text is read forwards alone.
_PROMPT = re.compile(
    r"^[ \t]*+(?:\(Pdb\+*+\)|ipdb>|pdb>|>>>|In \[\d++\]:|Out\[\d++\]:)[ \t]*+(?:(?:pp?|print)\b[ \t(]*+)?", re.MULTILINE
)
_ARRAY = r"(?:(?:torch|np|numpy|jnp)\.)?(?:tensor|array|Tensor|Array)\("
_NAMED_LINE = re.compile(rf"^[ \t]*+([A-Za-z_][\w.]*+)\)?[ \t]*+\n\s*+(?=(?:{_ARRAY}|\[))", re.MULTILINE)
_NAME_BEFORE = re.compile(rf"^[ \t]*+([A-Za-z_][\w.]*+)[ \t]++(?={_ARRAY}|\[)", re.MULTILINE)
_CODE = re.compile(r"\b(?:import|def|return|lambda|for|nn|F)\b|\w\.\w++\(|\b(?:ones|zeros|tril|triu|arange|softmax)\(")


def without_prompts(text: str) -> str:
    """Return the text with prompts taken away and ``name tensor(...)`` made ``name = tensor(...)``."""
    plain = _PROMPT.sub("", text)
    plain = _NAMED_LINE.sub(r"\1 = ", plain)
    return _NAME_BEFORE.sub(r"\1 = ", plain)


def is_code(text: str) -> bool:
    """Whether a text that is no print looks like a program."""
    return _CODE.search(text) is not None
