"""Models of other libraries, as these wrote them: captured right, or refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from bench.libraries import diffusion, families, hugging_face, refused, text, vision, x_transformers
from bench.libraries.case import Case


def every_case() -> Iterator[Case]:
    """Yield all cases, those of transformers first."""
    for part in (families, hugging_face, vision, text, x_transformers, diffusion, refused):
        yield from part.cases()
