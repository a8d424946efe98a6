//! A directory by itself: worked sequences, and random cores.

mod soak;
mod worked;

use super::{Directory, DirectorySpec, Event, Out};
use config::units::Frequency;
use engine::{Cx, Recorder, Time};
use proto::memory::{Absent, Access, AccessKind};
use proto::{Probe, Probed};

type Records = Recorder<Event, Out>;

/// A directory of four tiles and four cores at 1 GHz: a cycle is a nanosecond.
fn directory(latency: u32) -> Directory {
    let spec = DirectorySpec { clock: Frequency::new(1_000_000_000), latency };
    Directory::new(&spec, 4, 4).expect("a directory")
}

/// What a core sends.
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

    /// A core gets the line while nobody changes it: what it is answered.
    fn get(&mut self, kind: AccessKind, core: u16) -> AccessKind {
        self.ask(90, kind, core);
        let look = self.look(AccessKind::Read, core);
        self.looked(look);
        self.answer().1
    }

    /// Nothing is under way, and these cores have the line.
    fn quiet(&mut self, sharers: u64, exclusive: bool) {
        assert_eq!(self.sent(), []);
        assert_eq!(self.directory.outstanding(), 0);
        assert_eq!(self.directory.copies(LINE), (sharers, exclusive));
        assert_eq!(self.directory.entries(), usize::from(sharers != 0));
    }
}
