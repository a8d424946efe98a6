"""Values and workloads as the command has them."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import SpecError, WorkloadError

Values = Mapping[str, Any]
"""Keys of a spec with their values."""

Workload = str | os.PathLike[str] | Mapping[str, Any]
"""A workload as the command has it, a file, or the options of an fio job."""


def value_text(value: Any) -> str | None:
    """A value as TOML has it; ``None`` of what has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the one of a slash, which is not made.
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
    """Keys and values as overrides of the command. A text is what follows ``key=`` there: ``"16KiB"``, ``"8"``, ``"greedy"``."""
    found = []
    for key, value in (values or {}).items():
        text = value if isinstance(value, str) else value_text(value)
        if text is None:
            what = f"`{value!r}` is no value of a spec"
            raise SpecError(
                f"{what}\n  --> set  (key `{key}`)\n  help: a text, a number, a truth, or a list or dict of them",
                what=what,
                key=str(key),
                place="set",
                help="a text, a number, a truth, or a list or dict of them",
            )
        found.append(f"{key}={text}")
    return found


def workload_text(workload: Workload) -> str:
    """A workload as the command has it."""
    if isinstance(workload, Mapping):
        return "fio:" + ",".join(f"{name}={option_text(value)}" for name, value in workload.items())
    return os.fspath(workload)


def option_text(value: Any) -> str:
    """A value of an fio option."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)


def workload_texts(workload: Workload | Sequence[Workload]) -> list[str]:
    """One workload, or several, as the command has them."""
    several = isinstance(workload, Sequence) and not isinstance(workload, str)
    found = [workload_text(one) for one in workload] if several else [workload_text(workload)]  # type: ignore[union-attr, arg-type]
    if not found:
        raise WorkloadError("no workload is given")
    return found
