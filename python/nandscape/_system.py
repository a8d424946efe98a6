"""Systems with values of one's own, and what a spec can say."""

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
    """The names of the systems that are shipped."""
    return _native.systems()


def workloads() -> dict[str, str]:
    """The workloads that are shipped, each with its job."""
    return {name: job for name, _, job in _native.workloads()}


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a system file."""
    found: dict[str, Any] = json.loads(_native.schema())
    return found


def params(prefix: str = "") -> dict[str, str]:
    """Every key of a spec below a prefix, with its kind, units and limits."""
    return {key: kind for key, kind, _ in _native.params(prefix)}


def metrics(prefix: str = "") -> dict[str, str]:
    """Every field of the result document below a prefix, with its unit; ``*`` stands for an index or a name."""
    whole = (prefix, prefix + ".")
    return {key: unit for key, unit, _ in _native.metrics() if not prefix or key == prefix or key.startswith(whole[1])}


def explain(name: str) -> str:
    """What a key of a spec, or a field of the result document, means."""
    found = [f"{key}\n    {kind}\n    {doc}" for key, kind, doc in _native.params("") if key == name]
    found += [f"{key} ({unit})\n    {doc}" for key, unit, doc in _native.metrics() if _is_instance(key, name)]
    if not found:
        every = [key for key, *_ in _native.params("")] + [key for key, *_ in _native.metrics()]
        nearest = difflib.get_close_matches(name, every, 1)
        what = f"nothing is called `{name}`"
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
    """A system: a shipped one, a file, a text or a dict, with values of one's own.

    >>> drive = System("pm9a3").with_({"flash.ftl.over_provisioning": "20%"})
    >>> drive.flash.ftl.over_provisioning                           # doctest: +SKIP

    It is read when something of it is asked for, or when it runs; what is wrong with it is a ``SpecError`` then. It does not change:
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
        """A system of a text; ``name`` is what diagnostics and results call it. It may inherit shipped systems."""
        system = cls(name)
        system._text = text
        return system

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> System:
        """A system of a file, whatever it is called."""
        path = os.fspath(path)
        return cls(path if "/" in path or path.endswith(".toml") else f"./{path}")

    def with_(self, values: Values | None = None, **more: Any) -> System:
        """The system with other values: a dict by keys, or keywords. ``with_(**{"flash.ftl.gc.victim": "fifo"})``."""
        system = System(self)
        system._set += tuple(overrides({**(values or {}), **more}))
        return system

    @property
    def name(self) -> str:
        """A shipped system's name, the file's, or what the text is called."""
        return self._name

    @cached_property
    def _resolved(self) -> tuple[str, Any]:
        toml, spec = _native.resolve(self._name, self._text, list(self._set))
        return toml, json.loads(spec)

    def to_toml(self) -> str:
        """Every value, as a file of its own has them."""
        return self._resolved[0]

    def to_dict(self) -> dict[str, Any]:
        """Every value, as the result document has them."""
        spec: dict[str, Any] = self._resolved[1]
        return spec

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that have a value here."""
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
        """A key's value here, its kind, units and limits, and what it means."""
        table, _, rest = key.partition(".")
        # A table may have a name of one's own: it says of which kind it is.
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
