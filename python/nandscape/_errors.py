"""Exceptions for unusable input: one diagnostic each, as the command prints it."""

from __future__ import annotations

from typing import Any


class Error(ValueError):
    """Unusable input. The message says what is wrong, where, what is allowed, and the nearest valid spelling."""

    what: str
    """Fault, in one sentence."""
    key: str
    """Spec key at fault; empty if there is none."""
    place: str | None
    """File with line and column, or the argument."""
    nearest: str | None
    """Nearest valid spelling."""
    allowed: list[str]
    """Allowed values."""
    help: str | None
    """Remedy."""

    def __init__(
        self,
        message: str,
        *,
        what: str | None = None,
        key: str = "",
        place: str | None = None,
        nearest: str | None = None,
        allowed: list[str] | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(message)
        self.what = message if what is None else what
        self.key = key
        self.place = place
        self.nearest = nearest
        self.allowed = allowed or []
        self.help = help

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args[0], dict(self.__dict__))


def _again(kind: type[Error], message: str, fields: dict[str, Any]) -> Error:
    return kind(message, **fields)


class SpecError(Error):
    """Unusable system, or unusable value set in it."""


class WorkloadError(Error):
    """Unusable workload, or unusable options of its run."""
