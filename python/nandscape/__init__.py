"""nandscape: a simulator for computers that put flash next to compute.

>>> import nandscape as ns
>>> r = ns.run("d16", "fio:rw=randread,bs=4k,iodepth=64,number_ios=100000")
>>> r.io.read.p99                                                  # doctest: +SKIP

``run`` runs a workload on a system, ``sweep`` does so for many, ``System`` is a system with values of one's own, ``Machine`` is one that is run
in steps.
"""

from ._errors import Error, SpecError, WorkloadError
from ._machine import Machine, run
from ._native import ThreadView
from ._native import View as VictimView
from ._native import __commit__, __results__, __version__
from ._result import Node, Report, Result
from ._sensitivity import Effect, Sensitivity, sensitivity
from ._sweep import Failure, Point, Sweep, sweep
from ._system import System, explain, metrics, params, schema, systems, workloads
from ._table import Table

__all__ = [
    "Effect",
    "Error",
    "Failure",
    "Machine",
    "Node",
    "Point",
    "Report",
    "Result",
    "Sensitivity",
    "SpecError",
    "Sweep",
    "System",
    "Table",
    "ThreadView",
    "VictimView",
    "WorkloadError",
    "__commit__",
    "__results__",
    "__version__",
    "explain",
    "metrics",
    "params",
    "run",
    "schema",
    "sensitivity",
    "sweep",
    "systems",
    "workloads",
]
