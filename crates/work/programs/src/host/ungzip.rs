//! Program `ungzip`: processes that unpack files as fast as they can.

use config::Diagnostic;
use engine::{Rng, Time};
use proto::file::{Call, CallError, Fd, FileId, FileSpec, Next, OpenFlags, Program};

use super::server::Served;
use super::{Built, DRIVE, Entry, HostProgram, Named, Options, Parameter, Range};

/// Resolution of the ratio of unpacked to packed bytes: 1/1,000.
const PARTS: u64 = 1_000;
/// Maximum number of files.
const MOST: u64 = 1 << 20;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "processes",
        what: "processes, each with its own files",
        default: "1",
        range: Range::Count(1, 1_024),
        source: "chosen",
    },
    Parameter {
        name: "rate",
        what: "bytes that a process unpacks per second of core time, excluding system calls",
        default: "100MB/s",
        range: Range::Rate(1_000, 1 << 40),
        source: "chosen: gzip 1.10 on text on a core of 2 GHz",
    },
    Parameter {
        name: "spread",
        what: "largest deviation of a piece's time from its mean, in percent, uniform",
        default: "25",
        range: Range::Real(0.0, 100.0),
        source: "chosen: the speed follows the text, so that processes do not go in step",
    },
    Parameter {
        name: "ratio",
        what: "unpacked bytes per packed byte",
        default: "3.1",
        range: Range::Real(0.01, 1_000.0),
        source: "gzip on text of the Silesia and Calgary corpora",
    },
    Parameter {
        name: "file",
        what: "bytes of a packed file",
        default: "64MiB",
        range: Range::Size(1, 1 << 44),
        source: "chosen: two seconds of work",
    },
    Parameter {
        name: "files",
        what: "packed files per process, taken in turn; an existing text of a file is unlinked first",
        default: "16",
        range: Range::Count(1, 1 << 16),
        source: "chosen: a run of 30 s unpacks no file twice",
    },
    Parameter {
        name: "read",
        what: "bytes per read",
        default: "32KiB",
        range: Range::Size(512, 1 << 30),
        source: "gzip 1.10: INBUFSIZ of gzip.h (gzip 1.12 reads 256 KiB)",
    },
    Parameter {
        name: "write",
        what: "bytes per write",
        default: "32KiB",
        range: Range::Size(512, 1 << 30),
        source: "gzip 1.10 and 1.12: a window, WSIZE of gzip.h",
    },
    DRIVE,
];

/// Entry of the program.
pub(super) const ENTRY: Entry = Entry {
    name: "ungzip",
    source: "gzip 1.10 as `gunzip -k`: no fsync without --synchronous",
    what: "unpacks files one after the other, endlessly: reads in order, computes, writes to a new file",
    parameters: &[PARAMETERS],
    build,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Start before the first file: processes begin one after the other within the time of a piece.
    Begin,
    OpenPacked,
    Unlink,
    OpenText,
    /// Reads until the next piece is in memory, then unpacks it.
    Read,
    Write,
    CloseText,
    ClosePacked,
}

#[derive(Clone, Copy)]
struct Process {
    /// Index of its file.
    file: u64,
    /// Number of files begun before.
    turns: u64,
    phase: Phase,
    read: u64,
    written: u64,
    /// Start time of the current piece; none if there is none.
    since: Option<Time>,
    /// Bytes of the current write; zero if there is none.
    writing: u64,
}

struct Ungzip {
    name: String,
    rng: Rng,
    processes: Vec<Process>,
    files: u64,
    packed: u64,
    text: u64,
    ratio: u64,
    piece_ps: f64,
    spread: f64,
    read: u64,
    write: u64,
    drive: u16,
    served: Served,
}

fn build(options: &Options, named: Named<'_>) -> Built {
    Ok(Box::new(Ungzip::new(options, named)?))
}

impl Ungzip {
    fn new(options: &Options, named: Named<'_>) -> Result<Ungzip, Diagnostic> {
        let (processes, files) = (options.whole("processes"), options.whole("files"));
        if processes * files * 2 > MOST {
            let most = format!("at most {MOST} files of all processes, packed and text");
            return Err(options.refused("files", most));
        }
        let (packed, write) = (options.whole("file"), options.whole("write"));
        let ratio = (options.real("ratio") * PARTS as f64 + 0.5) as u64;
        let begin = Phase::Begin;
        let first = Process { file: 0, turns: 0, phase: begin, read: 0, written: 0, since: None, writing: 0 };
        Ok(Ungzip {
            name: named.name.to_owned(),
            rng: named.stream("pieces"),
            processes: vec![first; processes as usize],
            files,
            packed,
            text: ((u128::from(packed) * u128::from(ratio) / u128::from(PARTS)) as u64).max(1),
            ratio,
            piece_ps: write as f64 * 1e12 / options.whole("rate") as f64,
            spread: options.real("spread") / 100.0,
            read: options.whole("read"),
            write,
            drive: options.whole("drive") as u16,
            served: Served::new(&["piece"]),
        })
    }

    /// Returns the packed bytes that must be read before `text` bytes of text are known.
    fn needed(&self, text: u64) -> u64 {
        let packed = (u128::from(text) * u128::from(PARTS)).div_ceil(u128::from(self.ratio)) as u64;
        if text == self.text { self.packed } else { packed.min(self.packed) }
    }

    fn step(&mut self, at: usize, now: Time) -> Next {
        let Process { file, turns, phase, read, written, since, .. } = self.processes[at];
        let pair = (at as u64 * self.files + file) as u32 * 2;
        let (packed, text) = (FileId(pair), FileId(pair + 1));
        let (from, to) = (Fd(2 * at as u16), Fd(2 * at as u16 + 1));
        let flags = OpenFlags::default();
        let piece = (self.text - written).min(self.write);
        let (after, next) = match phase {
            Phase::Begin => {
                let share = at as f64 / self.processes.len() as f64;
                (Phase::OpenPacked, Next::Until(now + Time::from_ps((self.piece_ps * share) as u64)))
            }
            Phase::OpenPacked => {
                let there = turns >= self.files;
                let after = if there { Phase::Unlink } else { Phase::OpenText };
                (after, Next::Call(Call::Open { fd: from, file: packed, flags }))
            }
            Phase::Unlink => (Phase::OpenText, Next::Call(Call::Unlink { file: text })),
            Phase::OpenText => (Phase::Read, Next::Call(Call::Open { fd: to, file: text, flags })),
            Phase::Read if read < self.needed(written + piece) => {
                let bytes = self.read.min(self.packed - read);
                self.processes[at].read += bytes;
                self.processes[at].since = since.or(Some(now));
                (Phase::Read, Next::Call(Call::Read { fd: from, offset: read, bytes }))
            }
            Phase::Read => {
                self.processes[at].since = since.or(Some(now));
                let factor = 1.0 + self.spread * (2.0 * self.rng.unit() - 1.0);
                let part = piece as f64 / self.write as f64;
                let time = Time::from_ps((self.piece_ps * part * factor) as u64);
                (Phase::Write, Next::Compute(time))
            }
            Phase::Write => {
                self.processes[at].written += piece;
                self.processes[at].writing = piece;
                let after = if written + piece < self.text { Phase::Read } else { Phase::CloseText };
                (after, Next::Call(Call::Write { fd: to, offset: written, bytes: piece }))
            }
            Phase::CloseText => (Phase::ClosePacked, Next::Call(Call::Close { fd: to })),
            Phase::ClosePacked => {
                self.processes[at].file = (file + 1) % self.files;
                self.processes[at].turns += 1;
                (self.processes[at].read, self.processes[at].written) = (0, 0);
                (Phase::OpenPacked, Next::Call(Call::Close { fd: from }))
            }
        };
        self.processes[at].phase = after;
        next
    }
}

impl Program for Ungzip {
    fn name(&self) -> &str {
        &self.name
    }

    fn files(&self) -> Vec<FileSpec> {
        let drive = self.drive;
        let pairs = (0..self.processes.len() as u64).flat_map(|p| (0..self.files).map(move |n| (p, n)));
        let names = pairs.flat_map(|(p, n)| {
            let packed = FileSpec { name: format!("{p}/{n}.gz"), bytes: Some(self.packed), drive };
            [packed, FileSpec { name: format!("{p}/{n}"), bytes: None, drive }]
        });
        names.collect()
    }

    fn threads(&self) -> u32 {
        self.processes.len() as u32
    }

    fn next(&mut self, thread: u32, now: Time) -> Next {
        let at = thread as usize;
        let process = &mut self.processes[at];
        if process.writing > 0
            && let Some(since) = process.since.take()
        {
            let bytes = std::mem::take(&mut process.writing);
            self.served.answered(0, bytes, since, since, now);
        }
        let next = self.step(at, now);
        if let Next::Call(call) = &next {
            self.served.ask(call);
        }
        next
    }

    fn failed(&mut self, _: u32, error: CallError) {
        self.served.fail(error);
    }
}

impl HostProgram for Ungzip {
    fn reset_stats(&mut self, now: Time) {
        self.served.reset(now);
    }

    fn measured(&self) -> &Served {
        &self.served
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::open;
    use crate::host::tests::{Calls, drive};

    /// One file, by hand.
    #[test]
    fn a_file_is_read_before_what_is_made_of_it_is_written() {
        let text = "ungzip:file=1000B,read=512B,write=1024B,files=1,spread=0,rate=1024kB/s";
        let calls = Calls { time: Time::ZERO, ..Calls::default() };
        let mut program = open(text, "u", 1).unwrap();
        let done = drive(program.as_mut(), &calls, Time::from_us(3_500));
        let (from, to, flags) = (Fd(0), Fd(1), OpenFlags::default());
        let open = |fd, file| Next::Call(Call::Open { fd, file: FileId(file), flags });
        let read = |offset, bytes| Next::Call(Call::Read { fd: from, offset, bytes });
        let write = |offset, bytes| Next::Call(Call::Write { fd: to, offset, bytes });
        let ms = |n: u64| Next::Compute(Time::from_us(n));
        // 3,100 bytes out: 1,024 need 331 in, 2,048 need 661, 3,072 need 991; a piece takes 1 ms, the last one of 28 bytes its part.
        let expected = [
            Next::Until(Time::ZERO),
            open(from, 0),
            open(to, 1),
            read(0, 512),
            ms(1_000),
            write(0, 1_024),
            read(512, 488),
            ms(1_000),
            write(1_024, 1_024),
            ms(1_000),
            write(2_048, 1_024),
            Next::Compute(Time::from_ns(27_343)),
        ];
        let got: Vec<Next> = done.iter().map(|step| step.next).take(12).collect();
        assert_eq!(got[..11], expected[..11]);
        assert!(matches!(got[11], Next::Compute(t) if t.ns() == 27_343), "{:?}", got[11]);
        let rest: Vec<Next> = done.iter().map(|step| step.next).skip(12).take(6).collect();
        let again = Next::Call(Call::Unlink { file: FileId(1) });
        let close = |fd| Next::Call(Call::Close { fd });
        assert_eq!(rest, [write(3_072, 28), close(to), close(from), open(from, 0), again, open(to, 1)]);
        let served = program.measured();
        assert_eq!((served.requests(), served.asked().read_bytes), (4, 1_512));
        assert_eq!(served.kinds()[0].ops.bytes, 3_100);
    }

    #[test]
    fn a_process_writes_at_its_rate_and_others_beside_it() {
        let mut program = open("ungzip:processes=7,file=1MiB,files=3", "u", 1).unwrap();
        assert_eq!((program.threads(), program.files().len()), (7, 42));
        let calls = Calls { time: Time::ZERO, ..Calls::default() };
        drive(program.as_mut(), &calls, Time::from_s(1));
        // 3,051 pieces a process; the mean of pieces uniform within 25 % has a standard error of 0.25 / sqrt(3 x 3,051).
        let bytes = program.measured().kinds()[0].ops.bytes as f64;
        assert!((bytes / 700e6 - 1.0).abs() < 0.005, "{bytes}");
        let asked = program.measured().asked();
        assert!((asked.written_bytes as f64 / asked.read_bytes as f64 / 3.1 - 1.0).abs() < 0.01);
    }
}
