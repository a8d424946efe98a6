//! A recorded program as a [`Service`].

use std::fs::File;
use std::io::{self, Seek};

use config::Diagnostic;
use engine::Snapshot;
use proto::cpu::{Op, Service};
use proto::memory::PAGE;
use text::{Bad, Input};

use super::{Instruction, Reader};
use crate::cpu_trace::format::Format;
use crate::cpu_trace::ops::{Ops, Space};
use crate::program::{Key, Params};

/// Options for serving a recorded program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Instructions per job: 1 to 10,000,000. The machine holds all of them while the job runs.
    pub job: u64,
    /// Memory of the jobs.
    pub memory: Memory,
}

/// Memory of a recorded program's jobs, when several cores serve them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Separate memory per core: each core runs its own copy of the program.
    Private,
    /// Shared memory, stacks included: cores take lines from each other that the program alone would keep.
    Shared,
}

/// Parameters after the name of a recorded program: `sort.nst:job=50000`.
pub const PARAMETERS: &[Key] = &[
    Key { name: "job", what: "instructions of a job", default: "20000" },
    Key {
        name: "memory",
        what: "private: each core has a copy of the program's data; shared: all cores share one",
        default: "private",
    },
];

impl Options {
    /// Reads `key=value`; `text` is the complete text, for diagnostics.
    ///
    /// # Errors
    /// If a key is unknown, given twice or without a value, or a value is invalid.
    pub fn read(text: &str, parameters: &str) -> Result<Options, Diagnostic> {
        let parameters = Params::read(text, parameters, PARAMETERS)?;
        let memory =
            parameters.word("memory", &[("private", Memory::Private), ("shared", Memory::Shared)])?;
        Ok(Options { job: parameters.integer("job", 1..=MOST_JOB)?, memory })
    }
}

impl Default for Options {
    /// Defaults to jobs of 20,000 instructions, as long as those of the programs of [`service`](crate::service), with
    /// private memory.
    fn default() -> Options {
        Options { job: 20_000, memory: Memory::Private }
    }
}

/// Maximum instructions per job.
const MOST_JOB: u64 = 10_000_000;
/// Number of operations in a piece: few enough that the machine reads them from its cache.
const PIECE: usize = 256;

/// File of a trace, which can be read repeatedly.
struct Recording {
    file: File,
    format: &'static Format,
    source: String,
}

impl Recording {
    /// Opens it from its beginning; there must be no other reader.
    fn reader(&self) -> Result<Box<dyn Reader>, Diagnostic> {
        let open = || -> io::Result<Input> {
            let mut file = self.file.try_clone()?;
            file.rewind()?;
            Input::new(file)
        };
        let input = open()
            .map_err(|error| Bad::new(format!("cannot read the trace: {error}")).in_file(&self.source))?;
        Ok((self.format.reader)(input, &self.source))
    }
}

/// A recorded program as a service.
pub(super) struct Recorded {
    recording: Recording,
    reader: Box<dyn Reader>,
    /// Number of instructions that the reader has read, and that the trace has, as recorded.
    read: u64,
    whole: u64,
    space: Space,
    job: u64,
    memory: Memory,
    /// Number of cores that serve it, and of threads of each: one core with all slots by default.
    cores: u16,
    threads: u32,
    one: Instruction,
    slots: Vec<Slot>,
}

/// Job of a slot.
#[derive(Clone, Default)]
struct Slot {
    ops: Vec<Op>,
    /// Number of operations written to the machine's tape.
    written: usize,
}

impl Recorded {
    /// Reads the trace for the first time.
    pub(super) fn new(
        file: File,
        format: &'static Format,
        source: String,
        options: &Options,
    ) -> Result<Recorded, Diagnostic> {
        if !(1..=MOST_JOB).contains(&options.job) {
            return Err(Diagnostic::new(format!("invalid job length: {} instructions", options.job))
                .help(format!("a job has 1 to {MOST_JOB} instructions")));
        }
        let recording = Recording { file, format, source };
        let (mut space, mut whole, mut one) = (Space::default(), 0, Instruction::default());
        let mut reader = recording.reader()?;
        while reader.next(&mut one)? {
            space.touch(&one);
            whole += 1;
        }
        if whole == 0 {
            return Err(Bad::new("the trace has no instructions")
                .help("a trace needs at least one line or record")
                .in_file(&recording.source));
        }
        if space.text.len() * PAGE > u64::from(u32::MAX) {
            return Err(Bad::new(format!("too many pages of instructions: {}", space.text.len()))
                .help("at most 4 GiB of text: addresses of instructions have 32 bits")
                .in_file(&recording.source));
        }
        drop(reader);
        let reader = recording.reader()?;
        let Options { job, memory } = *options;
        Ok(Recorded {
            recording,
            reader,
            read: 0,
            whole,
            space,
            job,
            memory,
            cores: 1,
            threads: u32::MAX,
            one,
            slots: Vec::new(),
        })
    }

    /// Reads the next instruction, wrapping around at the end; returns whether the trace started over.
    ///
    /// # Panics
    /// If the file has changed since the first pass.
    fn next(&mut self) -> bool {
        let mut anew = false;
        loop {
            match self.reader.next(&mut self.one) {
                Ok(true) => {
                    self.read += 1;
                    return anew;
                }
                Ok(false) if self.read == self.whole => {
                    self.read = 0;
                    anew = true;
                    self.reader =
                        self.recording.reader().unwrap_or_else(|fault| self.changed(&fault.one_line()));
                }
                Ok(false) => self.changed("it is shorter now"),
                Err(fault) => self.changed(&fault.one_line()),
            }
        }
    }

    /// Returns the bytes of the data of one copy.
    fn data(&self) -> u64 {
        self.space.data.len().max(1) * PAGE
    }

    fn changed<T>(&self, what: &str) -> T {
        panic!("{} changed while it was read: {what}", self.recording.source)
    }
}

impl Service for Recorded {
    fn footprint(&self) -> u64 {
        let copies = if self.memory == Memory::Private { self.cores } else { 1 };
        self.data() * u64::from(copies.max(1))
    }

    fn serve_on(&mut self, cores: u16, threads: u32) {
        (self.cores, self.threads) = (cores, threads.max(1));
    }

    fn notes(&self) -> Vec<String> {
        if self.cores <= 1 {
            return Vec::new();
        }
        let (source, cores) = (&self.recording.source, self.cores);
        let whose = match self.memory {
            Memory::Private => {
                "its own copy of the program's data (memory=private); memory=shared gives all cores one copy"
            }
            Memory::Shared => {
                "the same data, stacks included (memory=shared), so cores take lines from each other; memory=private gives each a copy"
            }
        };
        vec![format!("{source}: each of the {cores} cores has {whose}")]
    }

    fn text(&self) -> u32 {
        (self.space.text.len().max(1) * PAGE) as u32
    }

    fn start(&mut self, slot: u32, _job: u64) {
        let at = slot as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Slot::default());
        }
        let copy = match self.memory {
            Memory::Private => u64::from(slot / self.threads) * self.data(),
            Memory::Shared => 0,
        };
        let mut tape = std::mem::take(&mut self.slots[at].ops);
        tape.clear();
        let (mut ops, mut taken) = (Ops::new(), 0);
        while taken < self.job {
            if self.next() {
                // The beginning does not depend on the end.
                ops.forget(&mut tape);
            }
            taken += u64::from(self.one.count);
            if ops.instruction(&self.one, &mut self.space, &mut tape).is_none() {
                self.changed("it uses different pages")
            }
        }
        ops.flush(&mut tape);
        for op in tape.iter_mut().filter(|op| op.width > 0) {
            op.address += copy;
        }
        self.slots[at] = Slot { ops: tape, written: 0 };
    }

    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool {
        let Slot { ops, written } = &mut self.slots[slot as usize];
        let end = ops.len().min(*written + PIECE);
        tape.extend_from_slice(&ops[*written..end]);
        *written = end;
        end < ops.len()
    }

    /// Saves how far the trace was read: the only remaining state of a job.
    fn save(&self, out: &mut Vec<u8>) {
        self.read.save(out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let read = u64::load(input).filter(|read| *read <= self.whole)?;
        self.reader = self.recording.reader().ok()?;
        for _ in 0..read {
            self.reader.next(&mut self.one).ok().filter(|is_there| *is_there)?;
        }
        self.read = read;
        Some(())
    }
}
