"""Columns that other packages read where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _native


class Column:
    """A column of a table. NumPy reads numbers where they lie: ``numpy.asarray(column)``."""

    def __init__(self, native: _native.Column) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def to_list(self) -> list[Any]:
        """The values; ``None`` where one is missing."""
        return self._native.to_list()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._native.__array_interface__

    def __iter__(self) -> Any:
        return iter(self.to_list())

    def __repr__(self) -> str:
        return f"<{len(self)} values>"


class Table:
    """Columns of one length with names, as Arrow has them.

    pandas, polars, pyarrow, DuckDB and others take it as it is, through the Arrow PyCapsule interface and without a copy:
    ``polars.DataFrame(t)``, ``pyarrow.table(t)``, ``pandas.DataFrame.from_arrow(t)``.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @classmethod
    def of(cls, columns: Mapping[str, list[Any]]) -> Table:
        """A table of lists of one length, in which ``None`` is missing."""
        return cls(_native.Table(dict(columns)))

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Table:
        """A table of rows; what a row lacks is missing. Columns are in the order in which rows first have them."""
        rows = list(rows)
        names = dict.fromkeys(name for row in rows for name in row)
        return cls.of({name: [row.get(name) for row in rows] for name in names})

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, name: str) -> Column:
        return Column(self._native.column(name))

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists."""
        return {name: self[name].to_list() for name in self.columns}

    def to_arrow(self) -> Any:
        """As a ``pyarrow.Table``, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """As a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame.from_arrow(self)

    def to_polars(self) -> Any:
        """As a ``polars.DataFrame``, without a copy."""
        import polars

        return polars.DataFrame(self)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<nandscape.Table: {len(self)} rows of {', '.join(self.columns)}>"
