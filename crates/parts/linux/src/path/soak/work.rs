//! Programs of a soak: threads that make random system calls on a few files.

use super::FILES;
use crate::PAGE;
use engine::{Rng, Time};
use proto::file::{Advice, Call, Fd, FileId, FileSpec, Next, OpenFlags, Program, SyncRange};
use std::collections::VecDeque;

/// Flags of the descriptors: each file has one of each kind.
pub(super) const KINDS: [OpenFlags; 5] = {
    let plain = OpenFlags { direct: false, sync: false, data_sync: false, truncate: false };
    [
        plain,
        OpenFlags { sync: true, ..plain },
        OpenFlags { data_sync: true, ..plain },
        OpenFlags { direct: true, ..plain },
        OpenFlags { direct: true, data_sync: true, ..plain },
    ]
};

/// Maximum pages of a file.
const MOST: u64 = 700;

/// Start or return of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) thread: u32,
    pub(super) call: Call,
    pub(super) begins: bool,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    /// Current call.
    call: Option<Call>,
    /// Actions before it chooses again.
    steps: VecDeque<Next>,
    /// File that it uses exclusively until then.
    owns: Option<u32>,
    left: u32,
}

/// All programs, as one with many threads.
#[derive(Clone, Debug)]
pub(super) struct Work {
    rng: Rng,
    /// Initial lengths of the files.
    bytes: [Option<u64>; FILES as usize],
    /// By file: calls in progress, and whether a thread uses it exclusively.
    under_way: [u32; FILES as usize],
    /// Direct writes and stores among them, which never overlap: the content after both is undefined.
    direct: [u32; FILES as usize],
    stores: [u32; FILES as usize],
    owned: [bool; FILES as usize],
    ready: bool,
    threads: Vec<Thread>,
    /// Starts and returns since the last check.
    pub(super) marks: Vec<Mark>,
}

pub(super) fn file_of(fd: Fd) -> u32 {
    u32::from(fd.0) / KINDS.len() as u32
}

pub(super) fn kind_of(fd: Fd) -> OpenFlags {
    KINDS[usize::from(fd.0) % KINDS.len()]
}

/// File of a call, if any.
pub(super) fn of(call: Call) -> Option<u32> {
    match call {
        Call::Open { fd, .. }
        | Call::Close { fd }
        | Call::Read { fd, .. }
        | Call::Write { fd, .. }
        | Call::Touch { fd, .. }
        | Call::Sync { fd, .. }
        | Call::SyncRange { fd, .. }
        | Call::Advise { fd, .. }
        | Call::Truncate { fd, .. } => Some(file_of(fd)),
        Call::Unlink { file } => Some(file.0),
        Call::SyncAll => None,
    }
}

impl Work {
    pub(super) fn new(rng: Rng, threads: u32, calls: u32) -> Work {
        let mut steps = VecDeque::new();
        (0..FILES).for_each(|file| steps.extend(opens(file)));
        let mut all = vec![Thread { left: calls, ..Thread::default() }; threads as usize];
        all[0].steps = steps;
        Work {
            rng,
            bytes: std::array::from_fn(|file| (file % 2 == 0).then_some(100 * PAGE * file as u64 + 300_000)),
            under_way: [0; FILES as usize],
            direct: [0; FILES as usize],
            stores: [0; FILES as usize],
            owned: [false; FILES as usize],
            ready: false,
            threads: all,
            marks: Vec::new(),
        }
    }

    fn chance(&mut self, of: u64) -> bool {
        self.rng.below(of) == 0
    }

    /// Draws a position in a file and a length, often within few pages, so that threads meet.
    fn extent(&mut self) -> (u64, u64) {
        let offset = match self.rng.below(3) {
            0 => self.rng.below(32 * PAGE),
            _ => self.rng.below(MOST * PAGE),
        };
        let bytes = match self.rng.below(4) {
            0 => 1 + self.rng.below(PAGE),
            1 => PAGE * (1 + self.rng.below(4)),
            2 => 1 + self.rng.below(16 * PAGE),
            _ => PAGE * (1 + self.rng.below(96)),
        };
        let offset = if self.chance(2) { offset - offset % PAGE } else { offset };
        (offset, bytes)
    }

    /// Chooses a thread's next action with a file, or with all.
    fn choose(&mut self, thread: u32, now: Time) -> Next {
        let file = self.rng.below(u64::from(FILES)) as u32;
        let own = self.under_way[file as usize] == 0;
        let (offset, bytes) = self.extent();
        let (page, pages) = (offset - offset % PAGE, bytes.next_multiple_of(PAGE));
        let fd = |kind: u16| Fd((file * KINDS.len() as u32) as u16 + kind);
        if self.owned[file as usize] {
            return Next::Compute(Time::from_us(1 + self.rng.below(20)));
        }
        let call = match self.rng.below(64) {
            0..18 => Call::Write { fd: fd(0), offset, bytes },
            18..20 => Call::Write { fd: fd(1), offset, bytes: bytes.min(8 * PAGE) },
            20..23 => Call::Write { fd: fd(2), offset, bytes: bytes.min(8 * PAGE) },
            23..26 if self.stores[file as usize] == 0 => {
                let kind = 3 + self.rng.below(2) as u16;
                Call::Write { fd: fd(kind), offset: page, bytes: pages }
            }
            26 => Call::Read { fd: fd(3), offset: page, bytes: pages },
            27..37 => Call::Read { fd: fd(0), offset, bytes },
            37..42 => {
                Call::Touch { fd: fd(0), offset, write: self.direct[file as usize] == 0 && self.chance(2) }
            }
            42..49 => Call::Sync { fd: fd(0), data_only: self.chance(2) },
            49..51 => {
                let how = SyncRange {
                    wait_before: self.chance(2),
                    write: !self.chance(4),
                    wait_after: self.chance(2),
                };
                Call::SyncRange { fd: fd(0), offset, bytes, how }
            }
            51..54 => {
                let advice = match self.rng.below(5) {
                    0 => Advice::Normal,
                    1 => Advice::Random,
                    2 => Advice::WillNeed,
                    _ => Advice::DontNeed,
                };
                Call::Advise { fd: fd(0), offset, bytes: if self.chance(3) { 0 } else { bytes }, advice }
            }
            54..57 => Call::Truncate {
                fd: fd(0),
                bytes: if self.chance(3) { 0 } else { offset.min(64 * PAGE) + bytes },
            },
            57 => Call::SyncAll,
            58 if own => {
                self.owned[file as usize] = true;
                let at = &mut self.threads[thread as usize];
                at.owns = Some(file);
                at.steps.extend((0..KINDS.len() as u16).map(|kind| Next::Call(Call::Close { fd: fd(kind) })));
                at.steps.push_back(Next::Call(Call::Unlink { file: FileId(file) }));
                at.steps.extend(opens(file));
                return Next::Compute(Time::from_us(1));
            }
            59 => return Next::Until(now + Time::from_us(self.rng.below(8_000))),
            _ => return Next::Compute(Time::from_us(1 + self.rng.below(100))),
        };
        Next::Call(call)
    }

    fn decide(&mut self, thread: u32, now: Time) -> Next {
        let at = &mut self.threads[thread as usize];
        if let Some(step) = at.steps.pop_front() {
            return step;
        }
        if let Some(file) = at.owns.take() {
            self.owned[file as usize] = false;
        }
        // The first thread opens the files.
        self.ready |= thread == 0;
        if !self.ready {
            return Next::Until(now + Time::from_us(50));
        }
        if at.left == 0 {
            return Next::End;
        }
        at.left -= 1;
        self.choose(thread, now)
    }
}

fn is_direct(call: Call) -> bool {
    matches!(call, Call::Write { fd, .. } if kind_of(fd).direct)
}

fn is_store(call: Call) -> bool {
    matches!(call, Call::Touch { write: true, .. })
}

fn opens(file: u32) -> impl Iterator<Item = Next> {
    KINDS.into_iter().enumerate().map(move |(kind, flags)| {
        let fd = Fd((file as usize * KINDS.len() + kind) as u16);
        Next::Call(Call::Open { fd, file: FileId(file), flags })
    })
}

impl Program for Work {
    fn name(&self) -> &str {
        "soak"
    }
    fn files(&self) -> Vec<FileSpec> {
        let name = |file| format!("{file}");
        (0..)
            .zip(self.bytes)
            .map(|(file, bytes): (u32, _)| FileSpec { name: name(file), bytes, drive: 0 })
            .collect()
    }
    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }
    fn next(&mut self, thread: u32, now: Time) -> Next {
        if let Some(call) = self.threads[thread as usize].call.take() {
            self.marks.push(Mark { thread, call, begins: false });
            if let Some(file) = of(call) {
                self.under_way[file as usize] -= 1;
                self.direct[file as usize] -= u32::from(is_direct(call));
                self.stores[file as usize] -= u32::from(is_store(call));
            }
        }
        let next = self.decide(thread, now);
        if let Next::Call(call) = next {
            self.threads[thread as usize].call = Some(call);
            self.marks.push(Mark { thread, call, begins: true });
            if let Some(file) = of(call) {
                self.under_way[file as usize] += 1;
                self.direct[file as usize] += u32::from(is_direct(call));
                self.stores[file as usize] += u32::from(is_store(call));
            }
        }
        next
    }
}
