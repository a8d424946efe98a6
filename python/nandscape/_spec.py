"""Values and workloads in the form of the command."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import SpecError, WorkloadError

Values = Mapping[str, Any]
"""Spec keys with their values."""

Workload = str | os.PathLike[str] | Mapping[str, Any]
"""Workload in the form of the command, a file, or the options of an fio job."""


def value_text(value: Any) -> str | None:
    """Converts a value to TOML; ``None`` if TOML has no such value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, str):
        # JSON's escapes are valid in TOML, except for that of a slash, which is never written.
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        inner = [(name, value_text(one)) for name, one in value.items()]
        if any(text is None for _, text in inner):
            return None
        return "{ " + ", ".join(f"{json.dumps(str(name))} = {text}" for name, text in inner) + " }"
    if isinstance(value, Sequence):
        items = [value_text(one) for one in value]
        return None if None in items else "[" + ", ".join(str(item) for item in items) + "]"
    return None


def overrides(values: Values | None) -> list[str]:
    """Converts keys and values to overrides of the command. A string is what follows ``key=`` there: ``"16KiB"``, ``"8"``, ``"greedy"``."""
    found = []
    for key, value in (values or {}).items():
        text = value if isinstance(value, str) else value_text(value)
        if text is None:
            what = f"`{value!r}` is not a spec value"
            raise SpecError(
                f"{what}\n  --> set  (key `{key}`)\n  help: give a string, a number, a bool, or a list or dict of them",
                what=what,
                key=str(key),
                place="set",
                help="give a string, a number, a bool, or a list or dict of them",
            )
        found.append(f"{key}={text}")
    return found


def workload_text(workload: Workload) -> str:
    """Converts a workload to the form of the command."""
    if isinstance(workload, Mapping):
        return "fio:" + ",".join(f"{name}={option_text(value)}" for name, value in workload.items())
    return os.fspath(workload)


def option_text(value: Any) -> str:
    """Converts the value of an fio option."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)


def workload_texts(workload: Workload | Sequence[Workload]) -> list[str]:
    """Converts one or more workloads to the form of the command."""
    several = isinstance(workload, Sequence) and not isinstance(workload, str)
    found = [workload_text(one) for one in workload] if several else [workload_text(workload)]  # type: ignore[union-attr, arg-type]
    if not found:
        raise WorkloadError("no workload given")
    return found
