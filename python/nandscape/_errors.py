"""What is raised for unusable input: one diagnostic, as the command prints it."""

from __future__ import annotations

from typing import Any


class Error(ValueError):
    """Unusable input. Its text says what is wrong, where, what is allowed, and the nearest right spelling."""

    what: str
    """What is wrong, in one sentence."""
    key: str
    """The key of the spec that it stands at; empty if it stands at none."""
    place: str | None
    """The file with line and column, or the argument."""
    nearest: str | None
    """The nearest right spelling."""
    allowed: list[str]
    """What would have been allowed."""
    help: str | None
    """What can be done about it."""

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
    """A system, or a value that is set in it, cannot be used."""


class WorkloadError(Error):
    """A workload, or how it is to be run, cannot be used."""
