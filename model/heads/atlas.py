"""An atlas that is open: what its manifest and its table of heads say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from ..atlas.folder import ATLAS, HALVES, HEADS, AtlasError, Manifest, check_complete, check_model, read_manifest
from ..atlas.measures import EXPLAINED
from ..atlas.places import NAMES
from ..checkpoint.files import folder_of
from ..language.say import say
from ..trace import KINDS, Head, Kind
from .labels import Label, label_of
from .names import head_name


@dataclass(frozen=True, eq=False)
class Atlas:
    """An atlas of the model that is looked at."""

    folder: Path
    manifest: Manifest
    heads: pd.DataFrame
    """A row a head; see :data:`model.atlas.measures.EXPLAINED`."""
    halves: pd.DataFrame
    """The same for the sentences of even and of odd numbers, told apart by ``half``."""

    @cached_property
    def names(self) -> tuple[Head, ...]:
        """The heads, in the order of the table."""
        places = zip(self.heads["map"], self.heads["layer"], self.heads["head"], strict=True)
        return tuple((kind, int(layer), int(head)) for kind, layer, head in places)

    @property
    def maps(self) -> tuple[Kind, ...]:
        """The maps that the model has."""
        return tuple(kind for kind in KINDS if (self.heads["map"] == kind).any())

    @cached_property
    def _rows(self) -> dict[Head, int]:
        return {head: at for at, head in enumerate(self.names)}

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """What the whole corpus says of each head, in the order of the table."""
        rows = self.heads.to_dict("records")
        return tuple(label_of(row, self.manifest.sentences) for row in rows)

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The measures that it holds."""
        return tuple(name for name in EXPLAINED if name in self.heads and self.heads[name].notna().any())

    def row(self, head: Head) -> pd.Series:
        """Return the measures of a head. AtlasError for one that the model has not."""
        try:
            return self.heads.iloc[self._rows[head]]
        except KeyError as error:
            raise AtlasError(say("This model has no {head}.", head=head_name(head))) from error

    def label(self, head: Head) -> Label:
        """Return what the whole corpus says of a head."""
        self.row(head)
        return self.labels[self._rows[head]]

    def most_like(self, head: Head, count: int = 5) -> list[tuple[Head, float]]:
        """The heads of the same map whose measures are nearest, each in units of its standard deviation."""
        own = self.heads[self.heads["map"] == head[0]]
        names = [name for name in self.measures if own[name].notna().all() and own[name].std() > 0]
        scaled = ((own[names] - own[names].mean()) / own[names].std()).to_numpy()
        self.row(head)
        at = [(kind, layer, number) for kind, layer, number in self.names if kind == head[0]].index(head)
        apart = np.sqrt(((scaled - scaled[at]) ** 2).mean(1))
        order = [place for place in np.argsort(apart, kind="stable").tolist() if place != at]
        heads = [one for one in self.names if one[0] == head[0]]
        return [(heads[place], float(apart[place])) for place in order[:count]]


def open_atlas(folder: Path, name: str, model_hash: str) -> Atlas:
    """Open the atlas of a model. AtlasError where it is of another, of another version, unfinished or damaged."""
    manifest = read_manifest(folder)
    check_complete(folder, manifest)
    check_model(manifest, name, model_hash)
    tables = []
    for table in (HEADS, HALVES):
        path = folder / f"{table}.parquet"
        try:
            tables.append(pd.read_parquet(path))
        except (
            OSError,
            ValueError,
            TypeError,
            LookupError,
            pa.ArrowException,
        ) as error:  # also of pandas' own notes in it
            raise AtlasError(
                say("{path} is damaged: restore the atlas from its source, or build it again.", path=path)
            ) from error
    return Atlas(folder, manifest, *tables)


def released_atlas(checkpoint: str | Path) -> Path:
    """Return the folder in which a checkpoint's own atlas is, or would be."""
    return folder_of(checkpoint) / ATLAS


__all__ = ["NAMES", "Atlas", "Head", "head_name", "open_atlas", "released_atlas"]
