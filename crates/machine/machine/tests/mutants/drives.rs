//! Devices under the soak's host, and drives under a host with a queue.

use super::Run;
use config::units::Bytes;
use engine::Mutant::{
    BlindMerge, BufferPassed, ChangedPlaces, DiscardIgnored, EagerErase, EarlyAcknowledge, EarlyFlush,
    EarlyStripe, EarlySync, EndlessSuspends, FreeErase, FreeResume, FreeSuspend, FuaIgnored, HeldTwice,
    LeftOut, LostLine, LostPart, LostProgram, LostWriteBack, LowPercentile, MeasuredTwice, MergeAcrossErase,
    OldWindow, OlderCommit, Overtaking, PinIgnored, RecordedTwice, RestartedProgram, StaleCopy, StaleFill,
    StalePage, StalePageCopy, SwappedEntries, TornProgram, TrimIgnored, TrimUndone, Unmeasured, UnpaidErase,
    UnpaidPacket, UnpaidProgram, UnpaidRead, UnpaidThread, UnpaidTransfer, UnreadPage, WrongBlock,
    WrongCacheBlock, WrongDrive, WrongStream,
};
use ftl::buffer::ahead::{LookAheadPolicy, sequential};
use machine::Warmup;
use machine::run::Plan;
use ssd::soak::{Combination, End, Map, Memory};
use std::fmt::Write;

pub(super) const DEVICES: &[Run] = &[
    Run {
        name: "device without a buffer",
        make: || soak(&Combination::plain()),
        kills: &[
            EagerErase,
            SwappedEntries,
            StaleCopy,
            LostProgram,
            EarlyAcknowledge,
            TrimUndone,
            TrimIgnored,
            PinIgnored,
            BlindMerge,
            TornProgram,
            RecordedTwice,
            FreeErase,
            WrongBlock,
        ],
    },
    Run {
        name: "device with a buffer",
        make: || soak(&Combination { memory: Memory::WriteBack, ..Combination::plain() }),
        kills: &[LostLine, EarlyFlush, FuaIgnored, BufferPassed, DiscardIgnored],
    },
    Run {
        name: "device that suspends",
        make: || soak(&Combination { suspend: true, ..Combination::plain() }),
        kills: &[FreeResume, FreeSuspend, RestartedProgram, EndlessSuspends],
    },
    Run {
        name: "device with a map on flash",
        make: || soak(&Combination { map: Map::Entries, ..Combination::plain() }),
        kills: &[LostWriteBack, StalePage, StalePageCopy, UnreadPage],
    },
    Run { name: "device that reads ahead", make: reads_ahead, kills: &[StaleFill] },
    Run {
        name: "device that reads registers",
        make: || soak(&Combination { registers: true, joins: true, ..Combination::plain() }),
        kills: &[MergeAcrossErase],
    },
    Run {
        name: "device whose registers gather writes",
        make: || soak(&Combination { tight: false, ..Combination::plain() }.with_registers(false)),
        kills: &[HeldTwice],
    },
    Run {
        name: "device with placements",
        make: || soak(&Combination { placements: 3, ..Combination::plain() }),
        kills: &[WrongStream],
    },
];

pub(super) const DRIVES: &[Run] = &[
    Run {
        name: "drive behind a queue",
        make: drive,
        kills: &[MeasuredTwice, Unmeasured, OldWindow, LowPercentile],
    },
    Run {
        name: "drive that tells its energy",
        make: metered,
        kills: &[UnpaidErase, UnpaidRead, UnpaidProgram, UnpaidTransfer, UnpaidPacket, Overtaking],
    },
    Run { name: "drive with a cache of one bit a cell", make: cached, kills: &[WrongCacheBlock, WrongBlock] },
    Run { name: "drive that chooses pages", make: chosen, kills: &[WrongBlock] },
    Run { name: "trace", make: replayed, kills: &[LeftOut, ChangedPlaces] },
    Run {
        name: "host that tells its energy",
        make: || {
            let job = "fio:rw=randrw,bs=4k,size=16m,number_ios=200,direct=0";
            super::shadowed("fastdrain", job, &["flash.precondition=none"])
        },
        kills: &[UnpaidThread],
    },
    Run {
        name: "service that syncs",
        make: || {
            let service = "img-u:size=64MB,requests=60,fsync=yes";
            super::shadowed("d16", service, &["flash.precondition=none"])
        },
        kills: &[EarlySync, OlderCommit],
    },
    Run {
        name: "drives behind a stripe",
        make: || {
            let job = "fio:rw=randrw,rwmixread=50,bsrange=4k-192k,iodepth=8,number_ios=300";
            super::shadowed("tests/keys/striped.toml", job, &["stripe.chunk=16KiB"])
        },
        kills: &[WrongDrive, LostPart, EarlyStripe],
    },
];

/// Few commands leave room in the buffer.
fn reads_ahead() -> Vec<String> {
    let params = sequential::Params { streams: 3, trigger: 1, window: Bytes::from_kib(16) };
    let look_ahead = LookAheadPolicy::sequential(params);
    soak(&Combination { memory: Memory::WriteThrough, depth: 4, look_ahead, ..Combination::plain() })
}

fn soak(combination: &Combination) -> Vec<String> {
    let outcome = ssd::soak::run(combination, 20_000, 1, true).expect("it can be built");
    let stuck = !matches!(outcome.end, End::Done | End::Violated);
    let end = stuck.then(|| format!("the end: {:?}", outcome.end));
    outcome.failed.into_iter().map(|check| check.name.to_owned()).chain(end).collect()
}

/// Energies of each kind that differ.
const ENERGY: &str = "flash.energy={ read = [\"1nJ\"], program = [\"3nJ\"], erase = \"7nJ\", transfer = \"1pJ\", \
     die = { idle = \"1mW\", busy = \"5mW\" }, controller = { idle = \"1W\", busy = \"2W\" }, \
     link = { transfer = \"1pJ\", on = \"100mW\" } }";

fn metered() -> Vec<String> {
    let small = ["flash.geometry.channels=1", "flash.geometry.ways=1"];
    let job = "fio:rw=randwrite,bs=4k,iodepth=16,number_ios=4000";
    super::failed(&small.iter().chain(&[ENERGY]).fold(plan(job), |plan, assignment| plan.set(assignment)))
}

/// The host writes more than its cache takes, again and again.
fn cached() -> Vec<String> {
    let set = [
        "flash.cell.bits=2",
        "flash.geometry.blocks=40",
        "flash.ftl.slc_cache={ read = \"20us\", program = \"100us\", fixed = 4, dynamic = \"0%\", full = \"direct\", \
         foreground = 1, keep = 0 }",
    ];
    let job = "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=12000";
    super::failed(&set.iter().fold(plan(job), |plan, assignment| plan.set(assignment)))
}

/// Units are opened by the choice of pages.
fn chosen() -> Vec<String> {
    let set = ["flash.cell.bits=2", "flash.ftl.pages=write_point"];
    let job = "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=12000";
    super::failed(&set.iter().fold(plan(job), |plan, assignment| plan.set(assignment)))
}

/// A request every 10 us.
fn replayed() -> Vec<String> {
    let mut trace = String::new();
    for n in 0..1_000u64 {
        let offset = (n * 37 % 500) * 4096;
        let _ = writeln!(
            trace,
            "{},host,0,{},{offset},4096,0",
            128_166_372_003_061_629 + n * 100,
            ["Read", "Write"][(n % 2) as usize]
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("requests.csv");
    std::fs::write(&file, trace).expect("a file can be written");
    super::failed(&plan(&file.display().to_string()))
}

fn drive() -> Vec<String> {
    let plan = plan("fio:rw=randrw,rwmixread=50,bs=4k,iodepth=16,number_ios=1000");
    super::failed(&Plan { warmup: Some(Warmup::Requests(300)), ..plan })
}

/// A drive of few blocks, with its shadow.
fn plan(job: &str) -> Plan {
    let set = [
        "flash.geometry.blocks=32",
        "flash.geometry.pages=16",
        "flash.ftl.gc.start=3",
        "flash.ftl.gc.stop=4",
        "flash.ftl.gc.hard=1",
        "flash.ftl.over_provisioning=25%",
        "flash.precondition=sequential",
        "sim.shadow=true",
    ];
    set.iter().fold(Plan::new("d16", job), |plan, assignment| plan.set(assignment))
}
