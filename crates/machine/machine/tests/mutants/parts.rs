//! Parts alone, against worked examples.

use super::Run;
use config::units::{Bytes, Duration, Frequency, TransferRate};
use engine::Mutant::{
    CorruptedHead, EarlyCommit, FreeBytes, FreeHandshake, FreeHeader, FreeHop, FreePrecharge, ReclaimedDirty,
    SharedLink, StaleFetch, StaleTranslation, UnflushedSync,
};
use engine::{Recorder, Time};
use linux::fs::{FsSpec, soak};
use linux::path;
use mem::dram::{self, Dram};
use mem::l2::{self, L2};
use mem::mmu::tlb::Tlb;
use net::fabric::{self, Fabric, FabricSpec};
use net::mesh::{MeshSpec, Switching};
use net::noc::topology::Topology;
use net::noc::{self, Class, Noc, NocSpec};
use net::pcie::Link;
use net::sata;
use proto::memory::{Absent, Access, AccessKind, MemCommand, PAGE};
use spec::MemorySpec;

pub(super) const PARTS: &[Run] = &[
    Run { name: "four packets of a crossbar", make: crossbar, kills: &[FreeHeader, SharedLink] },
    Run { name: "two lines on a mesh", make: mesh, kills: &[FreeHop] },
    Run { name: "a page over PCI Express", make: link, kills: &[FreeBytes] },
    Run { name: "a frame over Serial ATA", make: frame, kills: &[FreeHandshake] },
    Run { name: "two rows of a bank", make: rows, kills: &[FreePrecharge] },
    Run { name: "a write that passes a fetch", make: passed, kills: &[StaleFetch] },
    Run { name: "a page that has gone", make: translation, kills: &[StaleTranslation] },
    Run { name: "a file system whose power goes", make: power, kills: &[EarlyCommit, UnflushedSync] },
    Run {
        name: "hosts whose power goes",
        make: hosts,
        kills: &[EarlyCommit, UnflushedSync, ReclaimedDirty, CorruptedHead],
    },
];

fn differs<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Vec<String> {
    if found == expected { Vec::new() } else { vec![format!("{what}: {found:?} instead of {expected:?}")] }
}

/// Without delayed allocation commits have data to wait for. Each run is short, and ends with a cut.
fn power() -> Vec<String> {
    let spec = FsSpec { delalloc: false, journal_size: Some(Bytes::new(4 << 20)), ..FsSpec::default() };
    let plans = (0..200).map(|seed| {
        let actions = 200 + 2 * seed as u32;
        soak::Plan { spec: spec.clone(), bytes: 96 << 20, seed, actions }
    });
    plans.flat_map(|plan| soak::run(&plan).expect("it can be built").faults).collect()
}

/// Whole hosts, each with random programs. The first that is not sound ends it.
fn hosts() -> Vec<String> {
    let faults = |seed| path::soak::run(&path::soak::Plan::draw(seed)).expect("it can be built").faults;
    (0..300).map(faults).find(|faults| !faults.is_empty()).unwrap_or_default()
}

/// 1 GHz, 32 B a cycle, headers of 8 B, four cycles through: four requests of 136 B, five cycles each, leave by one link.
fn crossbar() -> Vec<String> {
    let spec = NocSpec {
        topology: Topology::crossbar,
        clock: Frequency::new(1_000_000_000),
        width: Bytes::new(32),
        header: Bytes::new(8),
        latency: 4,
    };
    let mut crossbar: Noc<u32> = Noc::new(&spec, 4).expect("a crossbar");
    let mut cx: Recorder<noc::Event, noc::Out<u32>> = Recorder::default();
    for n in 0..2 {
        crossbar.send((0, 2), Class::Request, 128, n, &mut cx);
        crossbar.send((1, 2), Class::Request, 128, 10 + n, &mut cx);
    }
    while let Some(event) = cx.queue.pop() {
        crossbar.handle(event, &mut cx);
    }
    let found: Vec<u64> = cx.sent.iter().map(|(at, _)| at.ns()).collect();
    differs("the packets leave", &found, &vec![9, 14, 19, 24])
}

/// A mesh of 16 B links at 2 GHz, three cycles a hop, lines of five transfers, in cycles. The one from 1 to 3 has the link
/// from 1 to 2 from 3 to 8, the next from 6 to 11, and is out at 14. The one from 0 to 2 is at router 1 at 6, has the link
/// from 8 to 13, is at router 2 at 11 and out at 16.
fn mesh() -> Vec<String> {
    let mesh = MeshSpec {
        rows: 4,
        columns: 4,
        width: Bytes::new(16),
        rate: TransferRate::new(2_000_000_000),
        router: Duration::new(Time::from_ps(1_500)),
        switching: Switching::cut_through,
    };
    let mut fabric: Fabric<u32> = Fabric::new(&FabricSpec { mesh, header: Bytes::new(8) }).expect("a mesh");
    let mut cx: Recorder<fabric::Event, fabric::Out<u32>> = Recorder::default();
    fabric.send((0, 2), 64, 1, &mut cx);
    fabric.send((1, 3), 64, 2, &mut cx);
    while let Some(event) = cx.queue.pop() {
        fabric.handle(event, &mut cx);
    }
    let found: Vec<u64> = cx.sent.iter().map(|(at, _)| at.ps() / 500).collect();
    differs("the lines leave in cycles", &found, &vec![14, 16])
}

/// 4 KiB at 4 GB/s.
fn link() -> Vec<String> {
    let mut link = Link::new(4_000_000_000, 0, Time::from_ns(100));
    differs("the last byte leaves", &link.to_device(Time::ZERO, 4096), &Time::from_ns(1024))
}

/// 4 KiB in a Data FIS of 1,025 Dwords, eight Dwords around it, at 600 MB/s less two ALIGN of 256 Dwords; four crossings of 100 ns.
fn frame() -> Vec<String> {
    let latency = Time::from_ns(100);
    let mut link = sata::Link::new(600_000_000, latency);
    link.send(Time::ZERO, sata::Fis::Data(4096));
    let wire = Time::transfer((1_025 + 8) * 4, 600_000_000 / 256 * 254);
    differs("the wire is held for", &link.busy(Time::from_us(100)), &(wire + latency.times(4)))
}

/// A line of another row of a bank takes a precharge and an activation longer than one of the open row.
fn rows() -> Vec<String> {
    let loaded = machine::load("ideal", &[]).expect("a system");
    let MemorySpec::Dram(spec) = &loaded.spec.memory[0].spec else { unreachable!("`ideal` has DRAM") };
    let spec = dram::DramSpec { refresh: None, ..spec.clone() };
    let mut dram = Dram::new(&spec, 128).expect("a memory");
    let mut cx: Recorder<dram::Event, dram::Out> = Recorder::default();
    let mut read = |page: u64| {
        // Long enough for every other limit to be over.
        let begun = cx.queue.now() + Time::from_us(1);
        let (tag, port, since) = (0, 0, begun);
        let (lines, write, demand, app, pc, absent) = (1, false, true, 0, 1, Absent::Wait);
        let command = MemCommand {
            from: proto::Port::default(),
            tag,
            page,
            lines,
            write,
            demand,
            app,
            port,
            pc,
            absent,
            since,
        };
        cx.queue.after(Time::from_us(1), dram::Event::Wake(0));
        while let Some(event) = cx.queue.pop() {
            dram.handle(event, &mut cx);
            if cx.queue.now() == begun {
                break;
            }
        }
        dram.command(command, &mut cx);
        while let Some(event) = cx.queue.pop() {
            dram.handle(event, &mut cx);
        }
        (cx.queue.now() - begun, dram.stats.row_conflicts)
    };
    read(0);
    let (hit, _) = read(0);
    let conflict = (1..4096).map(|page| read(page * PAGE)).find(|(_, conflicts)| *conflicts > 0);
    let conflict = conflict.map_or(Time::ZERO, |(time, _)| time);
    let timing = &spec.timing;
    differs("the conflict takes", &conflict, &(hit + timing.rp.time() + timing.rcd.time()))
}

/// A translation is forgotten when its page goes.
fn translation() -> Vec<String> {
    let mut tlb = Tlb::new(8, 2);
    tlb.fill(0, 5, 50);
    tlb.invalidate(0, 5);
    differs("the translation", &tlb.look_up(0, 5), &None)
}

/// A line is written, on its way to memory, while it is being fetched: what the fetch brings is old, and is not kept.
fn passed() -> Vec<String> {
    let loaded = machine::load("zng", &["l2.parked=0B".to_owned()]).expect("a system");
    let spec = &loaded.spec.l2[0].spec;
    let mut cache = L2::new(spec, 1).expect("a cache");
    cache.attach_shadow();
    let mut cx: Recorder<l2::Event, l2::Out> = Recorder::default();
    let mut commands = Vec::new();
    for (tag, kind) in [AccessKind::Read, AccessKind::Write, AccessKind::Read].into_iter().enumerate() {
        if tag == 2 {
            // Memory does both, the write first.
            commands.drain(..).rev().for_each(|command| cache.done(command, &mut cx));
        }
        let access = Access {
            tag: tag as u32,
            kind,
            address: 0,
            bytes: 128,
            app: 0,
            port: 0,
            warp: 0,
            pc: 1,
            absent: Absent::Wait,
            since: cx.queue.now(),
        };
        cache.access(cache.bank_of(0), access, &mut cx);
        while let Some(event) = cx.queue.pop() {
            cache.handle(event, &mut cx);
        }
        commands.extend(cx.sent.drain(..).filter_map(|(_, out)| match out {
            l2::Out::Command(command) => Some(command),
            l2::Out::Answer(_) => None,
        }));
    }
    commands.drain(..).for_each(|command| cache.done(command, &mut cx));
    let found = cache.shadowed().expect("it has one");
    differs("reads compared and wrong", &(found.compared, found.wrong), &(2, 0))
}
