"""Systems with overrides, and the keys of a spec."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from . import _native
from ._errors import SpecError
from ._result import Node
from ._spec import Values, overrides, value_text


def systems() -> list[str]:
    """Returns the names of the shipped systems."""
    return _native.systems()


def workloads() -> dict[str, str]:
    """Returns the shipped workloads, each with its job."""
    return {name: job for name, _, job in _native.workloads()}


def schema() -> dict[str, Any]:
    """Returns the JSON Schema (2020-12) of a system file."""
    found: dict[str, Any] = json.loads(_native.schema())
    return found


def params(prefix: str = "") -> dict[str, str]:
    """Returns every spec key below a prefix, with its kind, units and limits."""
    return {key: kind for key, kind, _ in _native.params(prefix)}


def metrics(prefix: str = "") -> dict[str, str]:
    """Returns every field of the result document below a prefix, with its unit; ``*`` is an index or a name."""
    whole = (prefix, prefix + ".")
    return {key: unit for key, unit, _ in _native.metrics() if not prefix or key == prefix or key.startswith(whole[1])}


def explain(name: str) -> str:
    """Explains a spec key, or a field of the result document."""
    found = [f"{key}\n    {kind}\n    {doc}" for key, kind, doc in _native.params("") if key == name]
    found += [f"{key} ({unit})\n    {doc}" for key, unit, doc in _native.metrics() if _is_instance(key, name)]
    if not found:
        every = [key for key, *_ in _native.params("")] + [key for key, *_ in _native.metrics()]
        nearest = difflib.get_close_matches(name, every, 1)
        what = f"unknown name `{name}`"
        raise SpecError(
            what + (f"\n  did you mean `{nearest[0]}`?" if nearest else ""),
            what=what,
            nearest=nearest[0] if nearest else None,
        )
    return "\n\n".join(found)


def _is_instance(pattern: str, name: str) -> bool:
    ours, theirs = pattern.split("."), name.split(".")
    return len(ours) == len(theirs) and all(a in ("*", b) for a, b in zip(ours, theirs, strict=True))


class System:
    """System: a shipped one, a file, a text or a dict, with overrides.

    >>> drive = System("pm9a3").with_({"flash.ftl.over_provisioning": "20%"})
    >>> drive.flash.ftl.over_provisioning                           # doctest: +SKIP

    The system is read when a value is requested, or when it runs; faults raise a ``SpecError`` then. It is immutable:
    ``with_`` makes another one. Two are equal if all their values are.
    """

    _name: str
    _text: str | None
    _set: tuple[str, ...]

    def __init__(self, base: str | os.PathLike[str] | Mapping[str, Any] | System) -> None:
        self._text, self._set = None, ()
        if isinstance(base, System):
            self._name, self._text, self._set = base._name, base._text, base._set
        elif isinstance(base, Mapping):
            lines = [f"{json.dumps(str(key))} = {value_text(value)}" for key, value in base.items()]
            self._name, self._text = "dict", "\n".join(lines) + "\n"
        else:
            self._name = os.fspath(base)

    @classmethod
    def from_toml(cls, text: str, name: str = "text") -> System:
        """Creates a system from a text; ``name`` identifies it in diagnostics and results. It may inherit shipped systems."""
        system = cls(name)
        system._text = text
        return system

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> System:
        """Creates a system from a file of any name."""
        path = os.fspath(path)
        return cls(path if "/" in path or path.endswith(".toml") else f"./{path}")

    def with_(self, values: Values | None = None, **more: Any) -> System:
        """Returns the system with changed values: a dict by keys, or keywords. ``with_(**{"flash.ftl.gc.victim": "fifo"})``."""
        system = System(self)
        system._set += tuple(overrides({**(values or {}), **more}))
        return system

    @property
    def name(self) -> str:
        """Name of the shipped system, of the file, or of the text."""
        return self._name

    @cached_property
    def _resolved(self) -> tuple[str, Any]:
        toml, spec = _native.resolve(self._name, self._text, list(self._set))
        return toml, json.loads(spec)

    def to_toml(self) -> str:
        """Returns every value as a self-contained system file."""
        return self._resolved[0]

    def to_dict(self) -> dict[str, Any]:
        """Returns every value in the form of the result document."""
        spec: dict[str, Any] = self._resolved[1]
        return spec

    def keys(self, prefix: str = "") -> list[str]:
        """Returns the keys with a value in this system."""
        found = (key for key, _ in _leaves(self.to_dict(), ""))
        return [key for key in found if not prefix or key == prefix or key.startswith(prefix + ".")]

    def __getitem__(self, key: str) -> Any:
        node: Any = Node(self.to_dict(), "", of="system")
        for part in key.split("."):
            node = node[part]
        return node

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(Node(self.to_dict(), "", of="system"), name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.to_dict()]

    def explain(self, key: str) -> str:
        """Explains a key: its value in this system, kind, units, limits and meaning."""
        table, _, rest = key.partition(".")
        # A table with a user-chosen name states its kind.
        kind = self.to_dict().get(table, {}).get("kind", table) if rest else table
        text = explain(f"{kind}.{rest}" if rest else key)
        try:
            return f"{key} = {self[key]!r}\n" + text.partition("\n")[2]
        except (KeyError, TypeError):
            return text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, System) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    def __repr__(self) -> str:
        return f"System({self._name!r})" + "".join(f".with_({one!r})" for one in self._set)


def _leaves(value: Any, path: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict) or not value:
        return [(path, value)]
    return [leaf for name, inner in value.items() for leaf in _leaves(inner, f"{path}.{name}" if path else name)]
