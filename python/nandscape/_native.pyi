from collections.abc import Callable
from typing import Any, final

__version__: str
__commit__: str
__results__: str

@final
class Plan:
    def __new__(
        cls,
        system: str,
        text: str | None,
        set: list[str],
        workloads: list[str],
        seed: int,
        precondition: str | None,
        warmup: str | None,
        queue_depth: int | None,
    ) -> Plan: ...
    def with_set(self, set: str) -> Plan: ...

@final
class Machine:
    def __new__(
        cls,
        plan: Plan,
        *,
        requests: bool = False,
        waits: bool = False,
        timeline: str | None = None,
        functions: list[tuple[str, Callable[..., Any]]] = ...,
    ) -> Machine: ...
    def run(self, until: str | None = None) -> None: ...
    def change(self, set: list[str], functions: list[tuple[str, Callable[..., Any]]]) -> None: ...
    def busy_s(self) -> float: ...
    def stop(self) -> None: ...
    def look(self) -> tuple[float, int, int, bool]: ...
    def result(self) -> str: ...
    def timeline(self) -> tuple[bytes, list[str]] | None: ...
    def requests(self, *, take: bool = False) -> Table | None: ...

@final
class Column:
    def __len__(self) -> int: ...
    def to_list(self) -> list[Any]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class Table:
    def __new__(cls, columns: dict[str, list[Any]]) -> Table: ...
    @property
    def columns(self) -> list[str]: ...
    def column(self, name: str) -> Column: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class View:
    """View of a GC victim policy: the closed reclaim units of one group."""

    @property
    def now(self) -> int:
        """Map units written to flash so far: the clock of ages."""

    @property
    def units_per_ru(self) -> int:
        """Map units per reclaim unit."""

    @property
    def units_per_program(self) -> int:
        """Map units per program unit."""

    @property
    def by_age(self) -> list[int]:
        """Closed units in the order of closing."""

    @property
    def by_valid(self) -> list[int]:
        """Head of each occupied bucket, fewest valid units first."""

    def __len__(self) -> int: ...
    def valid(self, unit: int) -> int:
        """Number of valid map units of a closed unit."""

    def age(self, unit: int) -> int:
        """Map units written to flash since the unit was closed."""

    def erases(self, unit: int) -> int:
        """Erase count of the most worn block of the unit."""

@final
class ThreadView:
    """View of a thread scheduler. Times are in nanoseconds."""

    @property
    def moment(self) -> str:
        """Reason of the call: ``ended``, the running job has ended or nothing runs; ``missed``, its page is in flash."""

    @property
    def now(self) -> float:
        """Current time."""

    @property
    def new(self) -> bool:
        """Whether a new job is waiting and a thread can run it."""

    @property
    def halted(self) -> list[tuple[float, bool]]:
        """Halted jobs in the order of halting: the time of halting, and whether the core knows that the page has arrived."""

    @property
    def response(self) -> float | None:
        """Measured response time of flash; ``None`` before the first response."""

    @property
    def due(self) -> bool:
        """Whether the oldest job has been halted for that time."""

def resolve(name: str, text: str | None, set: list[str]) -> tuple[str, str]: ...
def systems() -> list[str]: ...
def workloads() -> list[tuple[str, str, str]]: ...
def params(prefix: str) -> list[tuple[str, str, str]]: ...
def metrics() -> list[tuple[str, str, str]]: ...
def schema() -> str: ...
def refuse_unknown_metric(name: str) -> None: ...
def nearby(plan: Plan, below: list[str], factor: float) -> list[tuple[str, str, str | None, str | None]]: ...
def report(name: str, document: str) -> str: ...
