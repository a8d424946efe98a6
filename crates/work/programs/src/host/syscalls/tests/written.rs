//! Random logs, written by a naive kernel that knows its processes' actions, are read as these actions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use proto::file::{Call, Fd, FileId, OpenFlags};

use super::super::clock::Choice;
use super::super::files::Files;
use super::super::tracer::Op;
use super::super::{Log, Reader, Settings};

/// An action: the thread by order of birth, the open file description by order of opening, the call.
type Happened = (u32, u32, Call);

struct Description {
    file: usize,
    position: u64,
    append: bool,
    descriptors: u32,
}

#[derive(Default)]
struct Process {
    pid: u32,
    descriptors: BTreeMap<u32, usize>,
    /// Unfinished call: its name, and its effect.
    begun: Option<(&'static str, Step)>,
    over: bool,
}

/// A drawn call: its kind, descriptor or file, and two numbers.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    which: u8,
    first: u32,
    second: u32,
}

/// Style of a log.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// `[pid 7] ` before lines.
    brackets: bool,
    /// True to write paths after descriptors.
    paths: bool,
}

struct Kernel {
    form: Form,
    text: String,
    us: u64,
    processes: Vec<Process>,
    descriptions: Vec<Description>,
    /// Real lengths, and the numbers of files in the order in which the log names them.
    files: [(u64, Option<u32>); 5],
    named: u32,
    happened: Vec<Happened>,
}

const NAMES: [&str; 5] = ["/srv/a", "/srv/b c", "/srv/d,e", "/srv/f)", "/srv/g"];

impl Kernel {
    fn new(form: Form) -> Kernel {
        let first = Process { pid: 40, ..Process::default() };
        // The last two exist before.
        let files = [(0, None), (0, None), (0, None), (5_000, None), (100_000, None)];
        let (processes, descriptions) = (vec![first], Vec::new());
        Kernel {
            form,
            text: String::new(),
            us: 0,
            processes,
            descriptions,
            files,
            named: 0,
            happened: Vec::new(),
        }
    }

    fn line(&mut self, process: usize, what: &str) {
        self.us += 7;
        let (pid, us) = (self.processes[process].pid, self.us);
        let pid = if self.form.brackets { format!("[pid {pid:5}]") } else { pid.to_string() };
        let _ = writeln!(self.text, "{pid} {}.{:06} {what}", 1_700_000_000 + us / 1_000_000, us % 1_000_000);
    }

    /// Formats a descriptor as an argument.
    fn argument(&self, process: usize, number: u32) -> String {
        match self.processes[process].descriptors.get(&number) {
            Some(of) if self.form.paths => format!("{number}<{}>", NAMES[self.descriptions[*of].file]),
            _ => number.to_string(),
        }
    }

    /// Picks one of a process's descriptors.
    fn pick(&self, process: usize, which: u8) -> Option<(u32, usize)> {
        let descriptors = &self.processes[process].descriptors;
        let at = usize::from(which) % descriptors.len().max(1);
        descriptors.iter().nth(at).map(|(number, of)| (*number, *of))
    }

    fn free(&self, process: usize) -> u32 {
        let descriptors = &self.processes[process].descriptors;
        (3..).find(|number| !descriptors.contains_key(number)).expect("a number")
    }

    fn put(&mut self, process: usize, number: u32, of: usize) {
        self.close(process, number);
        self.descriptions[of].descriptors += 1;
        self.processes[process].descriptors.insert(number, of);
    }

    fn close(&mut self, process: usize, number: u32) {
        let Some(of) = self.processes[process].descriptors.remove(&number) else { return };
        self.descriptions[of].descriptors -= 1;
        if self.descriptions[of].descriptors == 0 {
            self.happened.push((process as u32, of as u32, Call::Close { fd: Fd(0) }));
        }
    }

    fn open(&mut self, process: usize, step: Step) {
        let file = usize::from(step.which) % NAMES.len();
        let (create, append, truncate) =
            (file < 3, step.first.is_multiple_of(3), file < 3 && step.second.is_multiple_of(4));
        let (direct, sync) = (step.first % 5 == 1, step.first % 7 == 1);
        let number = self.free(process);
        let flags = [
            (true, "O_RDWR"),
            (create, "|O_CREAT"),
            (append, "|O_APPEND"),
            (truncate, "|O_TRUNC"),
            (direct, "|O_DIRECT"),
            (sync, "|O_DSYNC"),
        ];
        let flags: String = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
        let mode = if create { ", 0644" } else { "" };
        let path = if self.form.paths { format!("<{}>", NAMES[file]) } else { String::new() };
        let name = NAMES[file];
        self.line(
            process,
            &format!("openat(AT_FDCWD, \"{name}\", {flags}{mode}) = {number}{path} <0.000003>"),
        );
        if self.files[file].1.is_none() {
            self.files[file].1 = Some(self.named);
            self.named += 1;
        }
        if truncate {
            self.files[file].0 = 0;
        }
        let of = self.descriptions.len();
        self.descriptions.push(Description { file, position: 0, append, descriptors: 0 });
        self.put(process, number, of);
        let flags = OpenFlags { direct, data_sync: sync, truncate, ..OpenFlags::default() };
        let id = FileId(self.files[file].1.expect("a named file"));
        self.happened.push((process as u32, of as u32, Call::Open { fd: Fd(0), file: id, flags }));
        let (argument, length) = (self.argument(process, number), self.files[file].0);
        let status = format!("{{st_mode=S_IFREG|0644, st_size={length}, ...}}");
        self.line(process, &format!("fstat({argument}, {status}) = 0 <0.000002>"));
    }

    /// Executes a call on a descriptor; returns its name, its leading arguments, and its last arguments with the
    /// result.
    fn happens(&mut self, process: usize, step: Step) -> Option<(&'static str, String, String)> {
        let (number, of) = self.pick(process, step.which)?;
        let argument = self.argument(process, number);
        let Description { file, position, append, .. } = self.descriptions[of];
        let (fd, length) = (Fd(0), self.files[file].0);
        let (count, place) = (u64::from(step.first % 100_000), u64::from(step.second % 200_000));
        let text = r#""a\")<3, \\\", 5""#;
        let (call, written) = match step.what {
            0 | 1 => {
                let offset = if step.what == 0 { position } else { place };
                let bytes = count.min(length.saturating_sub(offset));
                if step.what == 0 {
                    self.descriptions[of].position += bytes;
                }
                let call = Call::Read { fd, offset, bytes };
                if step.what == 0 {
                    (call, ("read", format!("{text}, {count}) = {bytes}")))
                } else {
                    (call, ("pread64", format!("{text}, {count}, {place}) = {bytes}")))
                }
            }
            2 | 3 => {
                let offset = match (step.what, append) {
                    (2, true) => length,
                    (2, false) => position,
                    _ => place,
                };
                self.files[file].0 = length.max(offset + count);
                let call = Call::Write { fd, offset, bytes: count };
                if step.what == 2 {
                    self.descriptions[of].position = offset + count;
                    let vector = format!("[{{iov_base={text}..., iov_len={count}}}], 1) = {count}");
                    (call, ("writev", vector))
                } else {
                    (call, ("pwrite64", format!("{text}..., {count}, {place}) = {count}")))
                }
            }
            4 => (Call::Sync { fd, data_only: false }, ("fsync", ") = 0".to_owned())),
            5 => (Call::Sync { fd, data_only: true }, ("fdatasync", ") = 0".to_owned())),
            _ => {
                self.files[file].0 = place;
                (Call::Truncate { fd, bytes: place }, ("ftruncate", format!("{place}) = 0")))
            }
        };
        self.happened.push((process as u32, of as u32, call));
        let comma = if written.1.starts_with(')') { "" } else { ", " };
        Some((written.0, argument, format!("{comma}{}", written.1)))
    }

    /// Calls that move no data.
    fn moves_descriptors(&mut self, process: usize, step: Step) {
        let Some((number, of)) = self.pick(process, step.which) else { return };
        let argument = self.argument(process, number);
        match step.what {
            7 => {
                let to = u64::from(step.first % 150_000);
                self.descriptions[of].position = to;
                self.line(process, &format!("lseek({argument}, {to}, SEEK_SET) = {to} <0.000001>"));
            }
            8 => {
                let copy = self.free(process);
                self.line(process, &format!("dup({argument}) = {copy} <0.000001>"));
                self.put(process, copy, of);
            }
            9 => {
                let (copy, _) = self.pick(process, step.first as u8).expect("a descriptor");
                let to = self.argument(process, copy);
                self.line(process, &format!("dup2({argument}, {to}) = {copy} <0.000001>"));
                if copy != number {
                    self.put(process, copy, of);
                }
            }
            _ => {
                self.line(process, &format!("close({argument}) = 0 <0.000001>"));
                self.close(process, number);
            }
        }
    }

    fn fork(&mut self, process: usize) {
        let pid = 41 + self.processes.len() as u32;
        let descriptors = self.processes[process].descriptors.clone();
        descriptors.values().for_each(|of| self.descriptions[*of].descriptors += 1);
        self.line(process, &format!("clone(child_stack=NULL, flags=SIGCHLD) = {pid} <0.000050>"));
        self.processes.push(Process { pid, descriptors, ..Process::default() });
    }

    fn exit(&mut self, process: usize) {
        self.line(process, "+++ exited with 0 +++");
        self.processes[process].over = true;
        while let Some((number, _)) = self.pick(process, 0) {
            self.close(process, number);
        }
    }

    /// Returns from an unfinished call of a process.
    fn resume(&mut self, process: usize) {
        if let Some((name, step)) = self.processes[process].begun.take() {
            let (_, _, end) = self.happens(process, step).expect("a descriptor");
            self.line(process, &format!("<... {name} resumed>{end} <0.000009>"));
        }
    }

    fn step(&mut self, process: usize, step: Step, split: bool) {
        self.resume(process);
        match step.what {
            0..=6 if split && self.pick(process, step.which).is_some() => {
                let name = ["read", "pread64", "writev", "pwrite64", "fsync", "fdatasync", "ftruncate"]
                    [usize::from(step.what)];
                let (number, _) = self.pick(process, step.which).expect("a descriptor");
                let argument = self.argument(process, number);
                self.line(process, &format!("{name}({argument} <unfinished ...>"));
                self.processes[process].begun = Some((name, step));
            }
            0..=6 => {
                if let Some((name, argument, end)) = self.happens(process, step) {
                    self.line(process, &format!("{name}({argument}{end} <0.000009>"));
                }
            }
            7..=10 => self.moves_descriptors(process, step),
            11 if self.processes.len() < 6 => self.fork(process),
            12 if process > 0 => self.exit(process),
            _ => self.open(process, step),
        }
    }

    fn finish(&mut self) {
        for process in 0..self.processes.len() {
            self.resume(process);
            if !self.processes[process].over {
                self.exit(process);
            }
        }
    }
}

/// Returns the actions that a reader finds.
fn read(text: &str) -> Vec<Happened> {
    let settings = Settings { kept: false, clock: Choice::Auto, overhead: 0, skip: false };
    let mut reader = Reader::new(Log::of(text.as_bytes()), settings, Files::default());
    let mut found = Vec::new();
    while !reader.done {
        reader.advance().unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        found.extend(reader.tracer.out.drain(..).filter_map(|(thread, op)| match op {
            Op::Call(name, call) => Some((thread, name, call)),
            _ => None,
        }));
    }
    found
}

fn step() -> impl Strategy<Value = (u8, Step, bool)> {
    let step = (0_u8..20, any::<u8>(), any::<u32>(), any::<u32>());
    let step = step.prop_map(|(what, which, first, second)| Step { what, which, first, second });
    (any::<u8>(), step, prop::bool::weighted(0.3))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_written_is_read(
        steps in prop::collection::vec(step(), 1..80),
        (brackets, paths) in any::<(bool, bool)>(),
    ) {
        let mut kernel = Kernel::new(Form { brackets, paths });
        for (who, step, split) in steps {
            let alive: Vec<usize> = (0..kernel.processes.len()).filter(|n| !kernel.processes[*n].over).collect();
            kernel.step(alive[usize::from(who) % alive.len()], step, split);
        }
        kernel.finish();
        prop_assert_eq!(read(&kernel.text), kernel.happened, "{}", kernel.text);
    }
}
