"""Query the tables of an atlas in SQL with DuckDB, which reads the Parquet files in place; there is no index.

A connection serves one query. It sees the files of its atlas and nothing else of the machine, its memory is limited,
and a query that takes too long is interrupted. What a visitor types is only ever a parameter, never a part of the SQL.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..language import say
from .files import COSTS_TABLE, LINKS_TABLE, SENTENCES_TABLE, TAGS_TABLE, AtlasError

if TYPE_CHECKING:
    import duckdb


class QuestionError(ValueError):
    """A question that cannot be read; the message says where and what there is."""


MEMORY_LIMIT, THREAD_LIMIT, TIME_LIMIT = "512MB", 2, 30.0
"""Memory, threads and seconds that one query may use."""
TABLE_FILES = {
    LINKS_TABLE: f"{LINKS_TABLE}/*.parquet",
    **{name: f"{name}.parquet" for name in (COSTS_TABLE, SENTENCES_TABLE, TAGS_TABLE)},
}


def run_query(
    folder: Path, table: str, sql: str, parameters: Sequence[Any] = (), seconds: float = TIME_LIMIT
) -> pd.DataFrame:
    """Run one SELECT over a table of an atlas, which `sql` calls {table}; ``?`` stands for a parameter.

    Raises AtlasError for a damaged file, which it names, for a query that takes more than `seconds`, and for one that
    needs more memory than it may have.
    """
    duckdb = import_duckdb()
    files = [str(path) for path in sorted(folder.glob(TABLE_FILES[table]))]
    if not files:
        missing = folder / TABLE_FILES[table]
        raise AtlasError(say("{path} is missing: restore the atlas from its source, or build it again.", path=missing))
    try:
        with _open_connection(folder, seconds) as connection:
            return connection.execute(sql.format(table="read_parquet(?)"), [files, *parameters]).df()
    except duckdb.InterruptException as error:
        raise AtlasError(
            say("This question took more than {seconds:.0f} seconds: ask for one map or one head.", seconds=seconds)
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise AtlasError(say("This question needs too much memory: ask for one map or one head.")) from error
    except duckdb.Error as error:
        damaged = _find_damaged_file(files)
        if damaged is None:
            raise
        raise AtlasError(
            say(
                "{path} is damaged: restore the atlas from its source, or build it again. ({error})",
                path=damaged,
                error=_first_error_line(error),
            )
        ) from error


def import_duckdb() -> ModuleType:
    """Return the library, which only questions to an atlas need. Raises AtlasError where it is not installed."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise AtlasError(
            say("An atlas is searched by DuckDB, which is not installed here: pip install duckdb.")
        ) from error
    return duckdb


def check_regular_expression(pattern: str) -> None:
    """Raise QuestionError for a regular expression that RE2 does not read."""
    duckdb = import_duckdb()
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute("SELECT regexp_matches('', ?)", [pattern])
    except duckdb.Error as error:
        raise QuestionError(
            say(
                "The regular expression “{pattern}” cannot be read: {error}.",
                pattern=pattern,
                error=_first_error_line(error),
            )
        ) from error


@contextmanager
def _open_connection(folder: Path, seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in memory that may read one folder, interrupted when it has run so long."""
    limits: dict[str, str | bool | int | float | list[str]] = {"memory_limit": MEMORY_LIMIT, "threads": THREAD_LIMIT}
    limits |= {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = import_duckdb().connect(":memory:", config=limits)
    end = threading.Timer(seconds, connection.interrupt)
    end.daemon = True
    try:
        # A path is no parameter of SET; quotes are doubled, so that it stays one string whatever it holds.
        place = str(folder).replace("'", "''")
        connection.execute(f"SET allowed_directories = ['{place}/']")
        connection.execute("SET temp_directory = ''")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        end.start()
        yield connection
    finally:
        end.cancel()
        connection.close()


def _find_damaged_file(files: Sequence[str]) -> str | None:
    """The first of the files that cannot be read."""
    import pyarrow.parquet as pq

    for file in files:
        try:
            with pq.ParquetFile(file) as table:
                for _ in table.iter_batches():
                    pass
        except Exception:  # whatever a damaged file makes of itself
            return file
    return None


def _first_error_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200].removeprefix("Invalid Input Error: ")
