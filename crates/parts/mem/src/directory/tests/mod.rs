//! Directory alone: worked sequences, and random cores.

mod soak;

use super::{Directory, DirectorySpec, Event, Out};
use crate::directory::DirectoryStats;
use AccessKind::{Own, Read, Write};
use config::units::Frequency;
use engine::{Cx, Recorder, Time};
use proto::memory::{Absent, Access, AccessKind, Stage};
use proto::{Probe, Probed};

type Records = Recorder<Event, Out>;

/// A directory of four tiles and four cores at 1 GHz: a cycle is a nanosecond.
fn directory(latency: u32) -> Directory {
    let spec = DirectorySpec { clock: Frequency::new(1_000_000_000), latency };
    Directory::new(&spec, 4, 4).expect("a directory")
}

/// Message of a core.
fn access(tag: u32, kind: AccessKind, core: u16, address: u64) -> Access {
    let since = Time::ZERO;
    Access {
        tag,
        kind,
        address,
        bytes: 64,
        app: 0,
        port: core,
        warp: 0,
        pc: 0x400,
        absent: Absent::Wait,
        since,
    }
}

/// A directory with what it sends.
struct Bench {
    directory: Directory,
    cx: Records,
}

/// The only line of a worked sequence, and its tile.
const LINE: u64 = 0x7_1040;
const TILE: u16 = 1;

impl Bench {
    fn new(latency: u32) -> Bench {
        Bench { directory: directory(latency), cx: Records::default() }
    }

    /// A core asks.
    fn ask(&mut self, tag: u32, kind: AccessKind, core: u16) {
        self.send(access(tag, kind, core, LINE));
    }

    fn send(&mut self, access: Access) {
        self.directory.access(TILE, Access { since: self.cx.now(), ..access }, &mut self.cx);
    }

    /// Everything inside happens.
    fn settle(&mut self) {
        while let Some(event) = self.cx.queue.pop() {
            self.directory.handle(event, &mut self.cx);
        }
    }

    /// All that has been sent since.
    fn sent(&mut self) -> Vec<Out> {
        self.settle();
        self.cx.sent.drain(..).map(|(_, out)| out).collect()
    }

    /// The only thing that has been sent since: a look of this kind for a core.
    fn look(&mut self, kind: AccessKind, core: u16) -> Access {
        match self.sent()[..] {
            [Out::Look { tile: TILE, access }] => {
                assert_eq!((access.kind, access.port, access.address), (kind, core, LINE));
                access
            }
            ref other => panic!("not one look: {other:?}"),
        }
    }

    /// The only thing that has been sent since: an answer. Its tag, kind, core and bytes.
    fn answer(&mut self) -> (u32, AccessKind, u16, u8) {
        match self.sent()[..] {
            [Out::Answer { tile: TILE, access }] => {
                assert_eq!((access.address, access.absent), (LINE, Absent::Wait));
                (access.tag, access.kind, access.port, access.bytes)
            }
            ref other => panic!("not one answer: {other:?}"),
        }
    }

    /// The probes that have been sent since, and nothing else: they ask this.
    fn probes(&mut self, invalidate: bool) -> Vec<Probe> {
        let probe = |out| match out {
            Out::Probe(probe) => {
                assert_eq!((probe.tile, probe.address, probe.invalidate), (TILE, LINE, invalidate));
                probe
            }
            other => panic!("not a probe: {other:?}"),
        };
        self.sent().into_iter().map(probe).collect()
    }

    fn looked(&mut self, access: Access) {
        self.directory.looked(TILE, access, &mut self.cx);
    }

    fn probed(&mut self, probe: Probe, found: bool, dirty: bool) {
        self.directory.probed(Probed { probe, found, dirty }, &mut self.cx);
    }

    /// Gives a core the line while no core changes it; returns the answer.
    fn get(&mut self, kind: AccessKind, core: u16) -> AccessKind {
        self.ask(90, kind, core);
        let look = self.look(AccessKind::Read, core);
        self.looked(look);
        self.answer().1
    }

    /// Checks that nothing is under way, and that these cores have the line.
    fn quiet(&mut self, sharers: u64, exclusive: bool) {
        assert_eq!(self.sent(), []);
        assert_eq!(self.directory.outstanding(), 0);
        assert_eq!(self.directory.copies(LINE), (sharers, exclusive));
        assert_eq!(self.directory.entries(), usize::from(sharers != 0));
    }
}

// Sequences of MESI by hand.

#[test]
fn the_first_reader_has_it_alone_and_the_second_shares() {
    let mut bench = Bench::new(0);
    assert_eq!(bench.get(Read, 2), Own);
    bench.quiet(0b100, true);
    // The owner has it unchanged: the bank is read.
    bench.ask(7, Read, 0);
    let probes = bench.probes(false);
    assert_eq!((probes.len(), probes[0].core), (1, 2));
    bench.probed(probes[0], true, false);
    let look = bench.look(Read, 0);
    bench.looked(look);
    assert_eq!(bench.answer(), (7, Read, 0, 64));
    bench.quiet(0b101, false);
    // The third asks no core.
    assert_eq!(bench.get(Read, 3), Read);
    bench.quiet(0b1101, false);
    let stats = DirectoryStats { reads: 3, downgrades: 1, ..DirectoryStats::default() };
    assert_eq!(bench.directory.stats, stats);
}

#[test]
fn a_sharer_owns_without_data() {
    let mut bench = Bench::new(0);
    bench.get(Read, 2);
    bench.directory.dropped(2, LINE);
    bench.quiet(0, false);
    bench.get(Read, 0);
    bench.ask(1, Read, 1);
    let probe = bench.probes(false)[0];
    bench.probed(probe, true, false);
    let look = bench.look(Read, 1);
    bench.looked(look);
    bench.answer();
    // Cores 0 and 1 share it; 0 changes it.
    bench.ask(5, Own, 0);
    let probes = bench.probes(true);
    assert_eq!((probes.len(), probes[0].core), (1, 1));
    bench.probed(probes[0], true, false);
    assert_eq!(bench.answer(), (5, Own, 0, 0));
    bench.quiet(0b1, true);
    // If no other core has it, it is answered at once.
    bench.directory.dropped(0, LINE);
    bench.get(Read, 3);
    bench.ask(6, Read, 2);
    let probe = bench.probes(false)[0];
    bench.probed(probe, true, false);
    let look = bench.look(Read, 2);
    bench.looked(look);
    bench.answer();
    bench.directory.dropped(3, LINE);
    bench.ask(8, Own, 2);
    assert_eq!(bench.answer(), (8, Own, 2, 0));
    bench.quiet(0b100, true);
    let stats = DirectoryStats {
        reads: 5,
        owns: 2,
        upgrades: 2,
        downgrades: 2,
        invalidations: 1,
        ..DirectoryStats::default()
    };
    assert_eq!(bench.directory.stats, stats);
}

#[test]
fn sharers_are_probed_while_the_bank_is_read() {
    for bank_first in [false, true] {
        let mut bench = Bench::new(0);
        bench.get(Read, 0);
        for core in [1, 2] {
            bench.ask(0, Read, core);
            for probe in bench.take_probes() {
                bench.probed(probe, true, false);
            }
            let look = bench.look(Read, core);
            bench.looked(look);
            assert_eq!(bench.answer().1, Read);
        }
        bench.ask(9, Own, 3);
        let sent = bench.sent();
        let [Out::Probe(a), Out::Probe(b), Out::Probe(c), Out::Look { access: look, .. }] = sent[..] else {
            panic!("three probes and a look: {sent:?}");
        };
        assert_eq!([a.core, b.core, c.core], [0, 1, 2]);
        if bank_first {
            bench.looked(look);
        }
        for probe in [a, b, c] {
            assert_eq!(bench.sent(), []);
            assert!(probe.invalidate);
            bench.probed(probe, true, false);
        }
        if !bank_first {
            assert_eq!(bench.sent(), []);
            bench.looked(look);
        }
        assert_eq!(bench.answer(), (9, Own, 3, 64));
        bench.quiet(0b1000, true);
    }
}

impl Bench {
    /// The probes that have been sent; looks stay.
    fn take_probes(&mut self) -> Vec<proto::Probe> {
        self.settle();
        let probe = |(_, out): &(Time, Out)| match out {
            Out::Probe(probe) => Some(*probe),
            _ => None,
        };
        let probes: Vec<_> = self.cx.sent.iter().filter_map(probe).collect();
        self.cx.sent.retain(|(_, out)| !matches!(out, Out::Probe(_)));
        probes
    }
}

#[test]
fn a_changed_line_goes_from_core_to_core() {
    let mut bench = Bench::new(0);
    assert_eq!(bench.get(Own, 0), Own);
    // To another that changes it: the bank is neither read nor written.
    bench.ask(1, Own, 1);
    let probe = bench.probes(true)[0];
    assert_eq!(probe.core, 0);
    bench.probed(probe, true, true);
    assert_eq!(bench.answer(), (1, Own, 1, 64));
    bench.quiet(0b10, true);
    // To a reader: the bank gets it as well, and the reader does not wait for that.
    bench.ask(2, Read, 2);
    let probe = bench.probes(false)[0];
    bench.probed(probe, true, true);
    let sent = bench.sent();
    let [Out::Look { tile: TILE, access: spill }, Out::Answer { access: answer, .. }] = sent[..] else {
        panic!("a write and an answer: {sent:?}");
    };
    assert_eq!((spill.kind, spill.port, spill.bytes, spill.address), (Write, 1, 64, LINE));
    assert_eq!((answer.tag, answer.kind, answer.port, answer.bytes), (2, Read, 2, 64));
    assert_eq!(bench.directory.outstanding(), 1);
    bench.looked(spill);
    bench.quiet(0b110, false);
    assert_eq!(bench.directory.stats.forwarded, 2);
}

#[test]
fn a_write_back_is_answered_and_forgotten() {
    let mut bench = Bench::new(0);
    bench.get(Own, 3);
    bench.ask(4, Write, 3);
    let write = bench.look(Write, 3);
    assert_eq!(bench.directory.entries(), 0);
    bench.looked(write);
    assert_eq!(bench.answer(), (4, Write, 3, 64));
    bench.quiet(0, false);
}

/// Core 0 writes back while core 1 asks. The write-back may come before the probe's answer or after it.
#[test]
fn a_write_back_races_with_a_probe() {
    for write_first in [false, true] {
        let mut bench = Bench::new(0);
        bench.get(Own, 0);
        bench.ask(1, Read, 1);
        let probe = bench.probes(false)[0];
        if !write_first {
            bench.probed(probe, false, false);
            assert_eq!(bench.sent(), []);
        }
        bench.ask(2, Write, 0);
        let sent = bench.sent();
        let [Out::Look { access: write, .. }, Out::Look { access: read, .. }] = sent[..] else {
            panic!("a write, then a read: {sent:?}");
        };
        assert_eq!(((write.kind, write.port), (read.kind, read.port)), ((Write, 0), (Read, 1)));
        bench.looked(write);
        assert_eq!(bench.answer(), (2, Write, 0, 64));
        bench.looked(read);
        if write_first {
            assert_eq!(bench.sent(), []);
            bench.probed(probe, false, false);
        }
        // No other core has it now.
        assert_eq!(bench.answer(), (1, Own, 1, 64));
        bench.quiet(0b10, true);
    }
}

/// An owner that drops the line unchanged says so before the probe finds nothing.
#[test]
fn an_owner_drops_the_line_under_a_probe() {
    let mut bench = Bench::new(0);
    bench.get(Read, 0);
    bench.ask(1, Own, 1);
    let probe = bench.probes(true)[0];
    bench.directory.dropped(0, LINE);
    bench.probed(probe, false, false);
    let look = bench.look(Read, 1);
    bench.looked(look);
    assert_eq!(bench.answer(), (1, Own, 1, 64));
    bench.quiet(0b10, true);
}

/// A core asks again for what it has written back, and its request overtakes.
#[test]
fn a_request_waits_for_the_write_back_of_its_own_core() {
    let mut bench = Bench::new(0);
    bench.get(Own, 0);
    bench.ask(1, Read, 0);
    assert_eq!(bench.sent(), []);
    bench.ask(2, Write, 0);
    let sent = bench.sent();
    let [Out::Look { access: write, .. }, Out::Look { access: read, .. }] = sent[..] else {
        panic!("a write, then a read: {sent:?}");
    };
    bench.looked(write);
    assert_eq!(bench.answer(), (2, Write, 0, 64));
    bench.looked(read);
    assert_eq!(bench.answer(), (1, Own, 0, 64));
    bench.quiet(0b1, true);
}

#[test]
fn transactions_of_a_line_wait_for_each_other_and_others_do_not() {
    let mut bench = Bench::new(0);
    for core in 0..3 {
        bench.ask(core.into(), Own, core);
    }
    let first = bench.look(Read, 0);
    bench.send(access(8, Read, 3, LINE + 64));
    let sent = bench.sent();
    let [Out::Look { access: other, .. }] = sent[..] else { panic!("another line's look: {sent:?}") };
    bench.looked(first);
    for core in 1..3u16 {
        let sent = bench.sent();
        let [Out::Answer { access: answer, .. }, Out::Probe(probe)] = sent[..] else {
            panic!("an answer, and the probe of the next: {sent:?}");
        };
        assert_eq!((answer.tag, answer.port, probe.core), (u32::from(core) - 1, core - 1, core - 1));
        bench.probed(probe, true, true);
    }
    assert_eq!(bench.answer(), (2, Own, 2, 64));
    assert_eq!((bench.directory.stats.conflicts, bench.directory.outstanding()), (2, 1));
    bench.looked(other);
    assert_eq!(bench.sent().len(), 1);
}

#[test]
fn a_signalled_request_notes_nobody_but_what_it_has_invalidated() {
    let mut bench = Bench::new(0);
    bench.get(Read, 0);
    bench.ask(1, Read, 1);
    let probe = bench.probes(false)[0];
    bench.probed(probe, true, false);
    // A reader is signalled: the owner shares with no core.
    let look = bench.look(Read, 1);
    bench.looked(Access { absent: Absent::Signalled, ..look });
    let signalled = |sent: Vec<Out>, kind, core| match sent[..] {
        [Out::Answer { access, .. }] => {
            assert_eq!((access.kind, access.port, access.bytes), (kind, core, 0));
            assert_eq!(access.absent, Absent::Signalled);
        }
        ref other => panic!("not an answer: {other:?}"),
    };
    signalled(bench.sent(), Read, 1);
    bench.quiet(0b1, false);
    // One that owns is signalled when the sharer has given up its copy.
    bench.send(Access { absent: Absent::Signal, ..access(2, Own, 2, LINE) });
    let sent = bench.sent();
    let [Out::Probe(probe), Out::Look { access: look, .. }] = sent[..] else {
        panic!("a probe and a look: {sent:?}");
    };
    assert_eq!(look.absent, Absent::Signal);
    bench.looked(Access { absent: Absent::Signalled, ..look });
    assert_eq!(bench.sent(), []);
    bench.probed(probe, true, false);
    signalled(bench.sent(), Own, 2);
    bench.quiet(0, false);
    assert_eq!(bench.directory.stats.upgrades, 0);
}

#[test]
fn a_walk_goes_past() {
    let mut bench = Bench::new(3);
    bench.get(Own, 0);
    let walk = Access { pc: 0, bytes: 8, ..access(6, Read, 1, LINE) };
    bench.send(walk);
    let look = bench.look(Read, 1);
    assert_eq!(look.bytes, 8);
    bench.looked(look);
    assert_eq!(bench.answer(), (6, Read, 1, 8));
    bench.quiet(0b1, true);
    assert_eq!(bench.directory.stats.walks, 1);
    assert_eq!(bench.directory.stats.reads, 0);
}

/// A look-up takes 3 ns, and everything else comes at once: two reads and a write.
#[test]
fn a_look_up_takes_its_cycles() {
    let mut bench = Bench::new(3);
    assert_eq!(bench.get(Own, 0), Own);
    assert_eq!(bench.cx.now(), Time::from_ns(3));
    bench.ask(1, Own, 1);
    let probe = bench.probes(true)[0];
    assert_eq!(bench.cx.now(), Time::from_ns(6));
    bench.probed(probe, true, true);
    let sent = bench.sent();
    let [Out::Answer { access: answer, .. }] = sent[..] else { panic!("an answer: {sent:?}") };
    assert_eq!(answer.since, Time::from_ns(6));
    bench.ask(2, Write, 1);
    let write = bench.look(Write, 1);
    assert_eq!(write.since, Time::from_ns(9));
    let (tally, at) = (&bench.directory.tally, Stage::Coherence as usize);
    assert_eq!((tally.reads()[at], tally.writes()[at]), (6_000, 3_000));
    bench.directory.reset_stats(Time::from_ns(9));
    assert_eq!(bench.directory.stats, DirectoryStats::default());
}

#[test]
fn an_entry_has_64_bits() {
    let spec = DirectorySpec { clock: Frequency::new(1_000_000_000), latency: 0 };
    assert!(Directory::new(&spec, 16, 64).is_ok());
    for cores in [0, 65] {
        assert_eq!(Directory::new(&spec, 16, cores).err().expect("unsound").key, "cores");
    }
    let still = DirectorySpec { clock: Frequency::new(0), latency: 0 };
    assert_eq!(Directory::new(&still, 16, 16).err().expect("unsound").key, "clock");
    assert_eq!(directory(0).outstanding(), 0);
}

/// An owner's copy is downgraded, and dropped before the answer has come: the reader has the line alone.
#[test]
fn a_shared_copy_is_dropped_before_its_probe_is_answered() {
    let mut bench = Bench::new(0);
    bench.get(Own, 0);
    bench.ask(1, Read, 1);
    let probe = bench.probes(false)[0];
    bench.directory.dropped(0, LINE);
    bench.probed(probe, true, true);
    let sent = bench.sent();
    let [Out::Look { access: spill, .. }, Out::Answer { access: answer, .. }] = sent[..] else {
        panic!("a write and an answer: {sent:?}");
    };
    assert_eq!((spill.kind, answer.kind, answer.port), (Write, Own, 1));
    bench.looked(spill);
    bench.quiet(0b10, true);
}
