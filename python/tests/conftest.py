"""What the tests share: small drives and short jobs."""

from __future__ import annotations

import pytest

SMALL = {
    "flash.geometry.channels": 2,
    "flash.geometry.ways": 1,
    "flash.geometry.blocks": 64,
    "flash.geometry.pages": 32,
    "flash.ftl.over_provisioning": "20%",
    "flash.ftl.gc.start": 3,
    "flash.ftl.gc.stop": 4,
    "flash.ftl.gc.hard": 1,
    "flash.precondition": "sequential",
}
"""A drive of 128 MiB, on which collection begins soon."""

READS = {"rw": "randread", "bs": "4k", "iodepth": 16, "number_ios": 5000}
OVERWRITES = {"rw": "randwrite", "bs": "4k", "iodepth": 16, "norandommap": 1, "randrepeat": 0, "size": "100%", "loops": 3}


@pytest.fixture
def small() -> dict[str, object]:
    return dict(SMALL)
