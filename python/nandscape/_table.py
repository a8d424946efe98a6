"""Columns that other packages read in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _native


class Column:
    """Column of a table. NumPy reads numbers in place: ``numpy.asarray(column)``."""

    def __init__(self, native: _native.Column) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def to_list(self) -> list[Any]:
        """Returns the values; ``None`` where one is missing."""
        return self._native.to_list()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._native.__array_interface__

    def __iter__(self) -> Any:
        return iter(self.to_list())

    def __repr__(self) -> str:
        return f"<{len(self)} values>"


class Table:
    """Named columns of one length, in the Arrow format.

    pandas, polars, pyarrow, DuckDB and others take it as it is, through the Arrow PyCapsule interface and without a copy:
    ``polars.DataFrame(t)``, ``pyarrow.table(t)``, ``pandas.DataFrame.from_arrow(t)``.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @classmethod
    def of(cls, columns: Mapping[str, list[Any]]) -> Table:
        """Creates a table from lists of one length; ``None`` is a missing value."""
        return cls(_native.Table(dict(columns)))

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Creates a table from rows; absent keys are missing values. Columns are in order of first appearance."""
        rows = list(rows)
        names = dict.fromkeys(name for row in rows for name in row)
        return cls.of({name: [row.get(name) for row in rows] for name in names})

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._native.columns

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, name: str) -> Column:
        return Column(self._native.column(name))

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns the columns as lists."""
        return {name: self[name].to_list() for name in self.columns}

    def to_arrow(self) -> Any:
        """Converts to a ``pyarrow.Table``, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """Converts to a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame.from_arrow(self)

    def to_polars(self) -> Any:
        """Converts to a ``polars.DataFrame``, without a copy."""
        import polars

        return polars.DataFrame(self)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<nandscape.Table: {len(self)} rows of {', '.join(self.columns)}>"
