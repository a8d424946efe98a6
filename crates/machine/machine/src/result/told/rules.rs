//! Rules from where time goes to the keys that influence it.

use super::keys::Change;
use super::{AMPLIFIED, drives, number};
use serde_json::Value;

/// Kinds of time that a rule can address.
#[derive(Clone, Copy, Debug)]
pub(super) enum On {
    /// Milestone of requests of any kind.
    Request(&'static str),
    /// Milestone of requests of one kind.
    Kind(&'static str, &'static str),
    /// Wait at a die, as far as it is behind these holders.
    Behind(&'static str, &'static [&'static str]),
    /// Stage of the accesses of GPUs and servers.
    Access(&'static str),
    /// Time of a server's cores, by activity.
    Core(&'static str),
    /// Time in which a GPU's multiprocessors issue.
    Issue,
    /// Phase of a coprocessor's kernels.
    Phase(&'static str),
    /// Phase of an accelerator's kernels.
    Kernel(Kernel),
    /// Reads of a host's files that its page cache held before.
    Refaults,
    /// Writers of a host's files that are throttled.
    Pauses,
}

/// Phase of an accelerator's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    /// Offload: until the kernel is on the accelerator.
    Offloaded,
    /// Queueing: until the first screen begins.
    Queued,
    /// Screens: cores issue.
    Computes,
    /// Screens: cores wait for their caches.
    Stalls,
    /// Screens: cores wait for data from flash.
    Waits,
    /// Write-back: from the last screen until the results are on flash.
    Writes,
}

/// Key that influences a kind of time.
pub(super) struct Rule {
    pub(super) on: On,
    pub(super) key: &'static str,
    pub(super) change: Change,
    /// Change to try, and the reason.
    pub(super) what: &'static str,
    /// Key that must be set too where it is `0`, and its value.
    pub(super) with: Option<(&'static str, &'static str)>,
    /// True if the key has no influence in this run.
    pub(super) is_pointless: fn(&Value) -> bool,
}

const fn rule(on: On, key: &'static str, change: Change, what: &'static str) -> Rule {
    Rule { on, key, change, what, with: None, is_pointless: |_| false }
}

const COLLECTION: &[&str] = &["collection_read", "collection_program", "erase"];
const PROGRAMS: &[&str] = &["collection_program", "host_program"];
const TRUE: Change = Change::Set("true", &[]);

/// Share that grows up to a half.
const SHARE: Change = Change::Double(0.5);

fn is_not_amplified(document: &Value) -> bool {
    !drives(document).any(|drive| number(drive, "/write_amplification").is_some_and(|waf| waf >= AMPLIFIED))
}

fn is_not_retried(document: &Value) -> bool {
    !drives(document).any(|drive| number(drive, "/retries/retried_reads").is_some_and(|reads| reads > 0.0))
}

fn is_past_a_kernel(document: &Value) -> bool {
    !is_through_a_kernel(document)
}

/// Returns whether requests go through a host's kernel: `host.submit` and `host.complete` are costs of the path past
/// it.
fn is_through_a_kernel(document: &Value) -> bool {
    document.pointer("/host/0/drives").is_some()
}

/// Rules in order of preference: among rules with equal shares of time, the first ones are suggested.
pub(super) const RULES: &[Rule] = &[
    // Drives.
    Rule {
        is_pointless: is_not_amplified,
        ..rule(
            On::Behind("die_wait", COLLECTION),
            "flash.ftl.over_provisioning",
            SHARE,
            "more over-provisioning: less data to move per block freed",
        )
    },
    Rule {
        with: Some(("flash.die.suspend.limit", "8")),
        ..rule(
            On::Behind("die_wait", PROGRAMS),
            "flash.die.suspend.program",
            TRUE,
            "reads interrupt programs, each as often as `flash.die.suspend.limit` allows",
        )
    },
    rule(
        On::Behind("die_wait", PROGRAMS),
        "flash.die.scheduler",
        Change::Set("read_first", &["priority"]),
        "reads go before programs that wait",
    ),
    Rule {
        with: Some(("flash.die.suspend.limit", "8")),
        ..rule(
            On::Behind("die_wait", &["erase"]),
            "flash.die.suspend.erase",
            TRUE,
            "reads interrupt erases, each as often as `flash.die.suspend.limit` allows",
        )
    },
    rule(
        On::Behind("die_wait", &["host_read"]),
        "flash.geometry.ways",
        Change::MORE,
        "more dies: reads spread over them",
    ),
    rule(On::Behind("die_wait", &["host_read"]), "flash.cell.read", Change::LESS, "a cell that reads faster"),
    rule(
        On::Behind("die_wait", &["host_read"]),
        "flash.die.independent_reads",
        TRUE,
        "planes of a die read independently",
    ),
    rule(
        On::Behind("die_wait", &["mapping"]),
        "flash.ftl.mapping.demand.capacity",
        Change::MORE,
        "a larger map cache: fewer mapping pages are read",
    ),
    rule(
        On::Behind("die_wait", &["look_ahead"]),
        "flash.buffer.look_ahead",
        Change::Set("none", &[]),
        "read-ahead occupies dies that other requests need",
    ),
    rule(On::Behind("die_wait", &["channel"]), "flash.channel.rate", Change::MORE, "a faster channel"),
    rule(On::Request("channel_wait"), "flash.channel.rate", Change::MORE, "a faster channel"),
    rule(On::Request("channel"), "flash.channel.rate", Change::MORE, "a faster channel"),
    rule(On::Request("channel_wait"), "flash.geometry.channels", Change::MORE, "more channels"),
    Rule {
        is_pointless: is_not_retried,
        ..rule(
            On::Kind("read", "array"),
            "flash.cell.errors.retry.correctable",
            Change::MORE,
            "a stronger code: fewer read retries",
        )
    },
    rule(On::Kind("read", "array"), "flash.cell.read", Change::LESS, "a cell that reads faster"),
    rule(On::Kind("write", "array"), "flash.cell.program", Change::LESS, "a cell that programs faster"),
    rule(On::Request("host_transfer"), "flash.host.link.pcie.lanes", Change::Double(16.0), "a wider link"),
    rule(On::Request("host_transfer"), "flash.host.link.plain.bandwidth", Change::MORE, "a faster link"),
    rule(On::Request("host_transfer"), "flash.host.link.pcie.latency", Change::LESS, "a lower link latency"),
    rule(
        On::Request("host_transfer"),
        "flash.host.link.sata.generation",
        Change::Set("3", &[]),
        "a faster link",
    ),
    rule(On::Request("controller"), "flash.host.controller.command", Change::LESS, "a faster controller"),
    rule(On::Request("controller"), "flash.host.controller.cores", Change::MORE, "more cores"),
    rule(
        On::Request("submission"),
        "flash.host.nvme.in_controller",
        Change::MORE,
        "more commands inside the controller",
    ),
    rule(
        On::Request("submission"),
        "flash.host.ahci.command",
        Change::LESS,
        "an adapter that sends commands sooner",
    ),
    rule(On::Request("submission"), "flash.host.controller.command", Change::LESS, "a faster controller"),
    rule(On::Request("mapping"), "flash.ftl.mapping.demand.capacity", Change::MORE, "a larger map cache"),
    rule(
        On::Request("buffer"),
        "flash.buffer.capacity",
        Change::MORE,
        "a larger buffer absorbs longer bursts; flash must sustain the rate in the long run",
    ),
    rule(
        On::Request("buffer"),
        "flash.cell.program",
        Change::LESS,
        "a cell that programs faster: the buffer drains faster",
    ),
    rule(
        On::Request("durable"),
        "flash.buffer.protected",
        TRUE,
        "the buffer survives a power loss, so flushes need not wait",
    ),
    rule(On::Request("space"), "flash.ftl.over_provisioning", SHARE, "more over-provisioning"),
    rule(On::Request("space"), "flash.ftl.gc.start", Change::MORE, "GC that starts earlier"),
    rule(
        On::Request("merge"),
        "flash.ftl.map_unit",
        Change::LESS,
        "a smaller map unit: fewer units are written in part",
    ),
    Rule {
        is_pointless: is_through_a_kernel,
        ..rule(On::Request("host"), "host.submit", Change::LESS, "less host software before submission")
    },
    Rule {
        is_pointless: is_through_a_kernel,
        ..rule(On::Request("host"), "host.complete", Change::LESS, "less host software after completion")
    },
    // Hosts.
    Rule {
        is_pointless: is_past_a_kernel,
        ..rule(
            On::Kind("read", "host"),
            "flash.cell.read",
            Change::LESS,
            "a cell that reads faster: a page-cache miss ends sooner",
        )
    },
    Rule {
        is_pointless: is_past_a_kernel,
        ..rule(
            On::Kind("read", "host"),
            "host.linux.page_cache.read_ahead_kb",
            Change::MORE,
            "more read-ahead: fewer page-cache misses",
        )
    },
    Rule {
        is_pointless: is_past_a_kernel,
        ..rule(
            On::Kind("write", "host"),
            "host.linux.costs.copy",
            Change::MORE,
            "a faster copy into the page cache",
        )
    },
    rule(
        On::Refaults,
        "host.linux.memory",
        Change::MORE,
        "more memory: fewer pages are evicted from the page cache",
    ),
    rule(
        On::Pauses,
        "host.linux.writeback.dirty_ratio",
        Change::Double(1.0),
        "more dirty pages before writers are held back",
    ),
    rule(On::Pauses, "flash.cell.program", Change::LESS, "a cell that programs faster"),
    // GPUs and servers.
    rule(On::Issue, "gpu.clock", Change::MORE, "faster multiprocessors"),
    rule(On::Issue, "gpu.sms", Change::MORE, "more multiprocessors"),
    rule(On::Core("latency"), "cpu.clock", Change::MORE, "faster cores: instructions wait for earlier ones"),
    rule(On::Core("retiring"), "cpu.clock", Change::MORE, "faster cores"),
    rule(On::Core("fetch"), "cpu.l1i.sets", Change::MORE, "a larger first-level cache for instructions"),
    rule(On::Core("switch"), "cpu.threads.switch", Change::LESS, "a faster thread switch"),
    rule(On::Core("kernel"), "swap.memory", Change::MORE, "more memory: fewer faults"),
    rule(On::Core("kernel"), "swap.fault", Change::LESS, "a system that handles a fault sooner"),
    rule(On::Access("tlb"), "gpu.tlb.entries", Change::MORE, "a larger TLB"),
    rule(On::Access("tlb"), "cpu.tlb.entries", Change::MORE, "a larger TLB"),
    rule(On::Access("tlb"), "mmu.tlb.latency", Change::LESS, "a faster shared TLB"),
    rule(On::Access("walk"), "mmu.tlb.entries", Change::MORE, "a larger shared TLB: fewer walks"),
    rule(On::Access("walk"), "mmu.walkers", Change::MORE, "more walks at once"),
    rule(
        On::Access("walk"),
        "mmu.table.radix.walk_cache.entries",
        Change::MORE,
        "a larger walk cache: fewer reads of the table",
    ),
    rule(On::Access("fault"), "swap.memory", Change::MORE, "more memory: fewer faults"),
    rule(On::Access("fault"), "paging.memory", Change::MORE, "more memory: fewer faults"),
    rule(
        On::Access("fault"),
        "paging.driver.fault_time",
        Change::LESS,
        "a driver that handles a fault sooner",
    ),
    rule(On::Access("fault"), "flash.cell.read", Change::LESS, "a cell that reads faster"),
    rule(On::Access("fault"), "swap.backing.fixed.read", Change::LESS, "a faster swap device"),
    rule(On::Access("network"), "network.width", Change::MORE, "a wider network"),
    rule(On::Access("network"), "network.latency", Change::LESS, "a lower network latency"),
    rule(On::Access("network"), "fabric.mesh.router", Change::LESS, "faster routers"),
    rule(On::Access("network"), "fabric.mesh.rate", Change::MORE, "faster links between routers"),
    rule(On::Access("l2"), "l2.sets", Change::MORE, "a larger shared cache"),
    rule(On::Access("l2"), "l2.read_latency", Change::LESS, "a faster shared cache"),
    rule(On::Access("l2"), "l2.write_latency", Change::LESS, "a shared cache that writes faster"),
    rule(On::Access("l2"), "l2.banks", Change::MORE, "more banks"),
    rule(On::Access("l1"), "gpu.sms", Change::MORE, "more multiprocessors: each has its own load-store unit"),
    rule(On::Access("l1"), "cpu.l1d.latency", Change::LESS, "a faster first-level cache"),
    rule(
        On::Access("controller"),
        "memory.direct.controller.dispatch",
        Change::LESS,
        "faster flash controllers",
    ),
    rule(
        On::Access("controller"),
        "memory.direct.controller.latency",
        Change::LESS,
        "faster flash controllers",
    ),
    rule(On::Access("controller"), "memory.engine.dispatch_time", Change::LESS, "a faster dispatcher"),
    rule(On::Access("controller"), "memory.initiator.dispatch_time", Change::LESS, "a faster dispatcher"),
    rule(
        On::Access("controller"),
        "memory.dram_cache.frontside.clock",
        Change::MORE,
        "a faster cache controller",
    ),
    rule(On::Access("ftl"), "memory.engine.ftl_time", Change::LESS, "a faster FTL"),
    rule(On::Access("ftl"), "memory.engine.ftl_in_service", Change::MORE, "more requests in the FTL at once"),
    rule(On::Access("buffer"), "memory.engine.dram.bandwidth", Change::MORE, "a faster buffer"),
    rule(On::Access("buffer"), "memory.engine.dram.latency", Change::LESS, "a faster buffer"),
    rule(On::Access("memory"), "memory.dram.controllers", Change::MORE, "more memory controllers"),
    rule(On::Access("memory"), "memory.dram.bus.rate", Change::MORE, "a faster memory bus"),
    rule(On::Access("memory"), "memory.dram.timing.rcd", Change::LESS, "memory that opens rows faster"),
    rule(On::Access("memory"), "memory.dram_cache.dram.bus.rate", Change::MORE, "a faster memory bus"),
    rule(
        On::Access("memory"),
        "memory.dram_cache.dram.timing.rcd",
        Change::LESS,
        "memory that opens rows faster",
    ),
    rule(On::Access("tags"), "memory.dram_cache.dram.bus.rate", Change::MORE, "a faster memory bus"),
    rule(
        On::Access("tags"),
        "memory.dram_cache.dram.timing.rcd",
        Change::LESS,
        "memory that opens rows faster",
    ),
    rule(On::Access("refill"), "memory.dram_cache.sets", Change::MORE, "a larger DRAM cache: fewer misses"),
    rule(On::Access("refill"), "flash.cell.read", Change::LESS, "a cell that reads faster"),
    rule(On::Access("refill"), "memory.dram_cache.backing.fixed.read", Change::LESS, "faster backing"),
    rule(On::Access("register"), "memory.direct.registers.count", Change::MORE, "more registers a plane"),
    rule(On::Access("register"), "memory.direct.array.program", Change::LESS, "a cell that programs faster"),
    rule(
        On::Access("flash_network"),
        "memory.direct.network.mesh.rate",
        Change::MORE,
        "a faster flash network",
    ),
    rule(On::Access("flash_network"), "memory.direct.network.bus.rate", Change::MORE, "faster channels"),
    rule(On::Access("array"), "memory.direct.array.read", Change::LESS, "a cell that reads faster"),
    rule(On::Access("array"), "flash.cell.read", Change::LESS, "a cell that reads faster"),
    rule(On::Access("reclaim"), "memory.direct.array.program", Change::LESS, "a cell that programs faster"),
    rule(On::Access("coherence"), "directory.latency", Change::LESS, "a faster directory"),
    rule(On::Access("coherence"), "fabric.mesh.router", Change::LESS, "faster routers"),
    // Accelerators behind a host.
    rule(On::Phase("work"), "coprocessor.core.clock", Change::MORE, "faster cores"),
    rule(On::Phase("work"), "coprocessor.cores", Change::Double(64.0), "more cores"),
    rule(On::Phase("work"), "coprocessor.core.l2.miss", Change::LESS, "a lower memory latency"),
    rule(On::Phase("send"), "coprocessor.link.send", Change::MORE, "a faster link to the coprocessor"),
    rule(On::Phase("receive"), "coprocessor.link.receive", Change::MORE, "a faster link back"),
    rule(On::Phase("marshal"), "coprocessor.offload.marshal", Change::MORE, "faster marshalling"),
    rule(On::Phase("copy"), "coprocessor.offload.copy", Change::MORE, "a faster copy to the driver"),
    rule(On::Phase("read"), "flash.cell.read", Change::LESS, "a cell that reads faster"),
    rule(On::Phase("read"), "host.linux.page_cache.read_ahead_kb", Change::MORE, "more read-ahead"),
    rule(On::Phase("read"), "flash.host.controller.unit", Change::LESS, "a faster controller"),
    rule(On::Phase("write"), "host.linux.costs.copy", Change::MORE, "a faster copy into the page cache"),
    rule(On::Phase("sync"), "flash.cell.program", Change::LESS, "a cell that programs faster"),
    rule(
        On::Phase("sync"),
        "coprocessor.offload.sync",
        Change::Set("false", &[]),
        "results are not made durable",
    ),
    // Accelerators with flash of their own.
    rule(
        On::Kernel(Kernel::Offloaded),
        "accelerator.offload.link.pcie.lanes",
        Change::Double(16.0),
        "a wider link",
    ),
    rule(
        On::Kernel(Kernel::Offloaded),
        "accelerator.offload.table",
        Change::LESS,
        "smaller description tables",
    ),
    rule(
        On::Kernel(Kernel::Queued),
        "accelerator.core.clock",
        Change::MORE,
        "faster cores: kernels ahead end sooner",
    ),
    rule(On::Kernel(Kernel::Queued), "accelerator.workers", Change::Double(64.0), "more cores"),
    rule(On::Kernel(Kernel::Computes), "accelerator.core.clock", Change::MORE, "faster cores"),
    rule(On::Kernel(Kernel::Computes), "accelerator.workers", Change::Double(64.0), "more cores"),
    rule(On::Kernel(Kernel::Stalls), "accelerator.core.l2.miss", Change::LESS, "a lower memory latency"),
    rule(On::Kernel(Kernel::Stalls), "accelerator.core.l2.size", Change::MORE, "larger caches"),
    rule(On::Kernel(Kernel::Waits), "group_flash.cell.read", Change::LESS, "a cell that reads faster"),
    rule(On::Kernel(Kernel::Waits), "group_flash.link.rate", Change::MORE, "a faster link from flash"),
    rule(
        On::Kernel(Kernel::Waits),
        "group_flash.groups.translation",
        Change::Set("striped", &[]),
        "data spread over packages",
    ),
    rule(On::Kernel(Kernel::Writes), "group_flash.cell.program", Change::LESS, "a cell that programs faster"),
    rule(
        On::Kernel(Kernel::Writes),
        "group_flash.groups.translation",
        Change::Set("striped", &[]),
        "results spread over packages",
    ),
];
