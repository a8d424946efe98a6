//! Workloads by name: shipped workloads, inline fio jobs, job files, traces.

pub use super::split as part_and_workload;

use super::workload_of;
use crate::source::{FioSource, Replay, TraceSource};
use config::Diagnostic;
use engine::Time;
use programs::host::{self, HostProgram};
use programs::kernels::{self, Application};
use programs::program::{self, Program};
use programs::service::{self, Service};
use programs::{cpu_trace, simt_trace};
use requests::fio::{self, Behind, Layout};
use requests::inject::Source;
use requests::synth::Region;
use requests::trace::{self, TraceOptions, TraceReader};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Name, meaning and inline job of every shipped workload. A new workload is a line.
pub const WORKLOADS: &[(&str, &str, &str)] = &[
    (
        "randread",
        "4 KiB random reads at queue depth 64",
        "fio:rw=randread,bs=4k,iodepth=64,number_ios=1000000",
    ),
    (
        "randwrite",
        "4 KiB random writes at queue depth 64",
        "fio:rw=randwrite,bs=4k,iodepth=64,number_ios=1000000",
    ),
    (
        "mixed",
        "4 KiB random, 70 % reads, at queue depth 64",
        "fio:rw=randrw,rwmixread=70,bs=4k,iodepth=64,number_ios=1000000",
    ),
    (
        "seqread",
        "128 KiB sequential reads at queue depth 16",
        "fio:rw=read,bs=128k,iodepth=16,number_ios=200000",
    ),
    (
        "seqwrite",
        "128 KiB sequential writes at queue depth 16",
        "fio:rw=write,bs=128k,iodepth=16,number_ios=200000",
    ),
];

/// Options for reading workloads.
#[derive(Clone, Debug)]
pub struct WorkloadOptions {
    /// Options for reading traces.
    pub trace: TraceOptions,
    /// Queue depth at which traces are replayed, in place of their own times.
    pub queue_depth: Option<u32>,
    /// Capacity of the device, bytes; zero without a device.
    pub capacity: u64,
    /// Size of the file that fills the device, on the host's file system, in bytes; or the reason why none exists.
    pub file_bytes: Result<u64, Box<Diagnostic>>,
    /// Poll queues that the host's kernel has for a drive, if the spec describes the kernel: then direct requests also
    /// go through it.
    pub kernel: Option<u16>,
    /// Drives behind the device, if it is a stripe.
    pub behind: Option<Behind>,
    /// Seed of the run.
    pub seed: u64,
}

/// Workload that was opened.
pub enum Opened {
    /// Requests of a host.
    Requests(Requests),
    /// Programs of a GPU, side by side.
    Programs(Vec<Box<dyn Program>>),
    /// Service for the cores of a server.
    Service(Box<dyn Service>),
    /// Program of a host.
    Host(Box<dyn HostProgram>),
    /// Kernels of an accelerator, or of a different part that executes them, by application.
    Kernels(Vec<Application>),
}

/// Requests of a host, opened.
pub struct Requests {
    /// Source of the requests.
    pub source: Box<dyn Source>,
    /// Warnings about how the source was read.
    pub warnings: Vec<String>,
    /// Time at which results begin to count.
    pub ramp: Time,
    /// True if the source is a recorded trace.
    pub is_trace: bool,
    /// True if requests go to files of the host, through its kernel.
    pub to_file: bool,
    /// Files laid out on the drive for the requests; empty if a single file fills it.
    pub files: Vec<Region>,
    /// I/O scheduler of the drive, if the requests set one.
    pub scheduler: Option<fio::Scheduler>,
}

/// Findings about workloads that were checked.
#[derive(Debug, Default)]
pub struct Checked {
    /// Warnings about how the workloads were read.
    pub warnings: Vec<String>,
    /// True if a workload is a recorded trace.
    pub has_trace: bool,
    /// Kernels of an accelerator among them.
    pub kernels: Option<Vec<Application>>,
}

/// Kind of workload that a user's text names.
enum Named {
    Jobs(fio::Jobs),
    /// Trace, to be opened with the others.
    Trace(PathBuf),
    Programs(Vec<Box<dyn Program>>),
    Service(Box<dyn Service>),
    /// Program of a host, to be opened with its name in the run.
    Host,
    Kernels(Vec<Application>),
}

/// Resolves a text: a program, a service, a shipped workload, an inline job, a job file, otherwise a trace.
fn find(text: &str, options: &WorkloadOptions) -> Result<Named, Diagnostic> {
    if let Some((.., job)) = WORKLOADS.iter().find(|(name, ..)| *name == text) {
        return fio::parse_inline(job).map(Named::Jobs);
    }
    if text.starts_with("fio:") {
        return fio::parse_inline(text).map(Named::Jobs);
    }
    if is_program(text) {
        return program::open(&[text]).map(Named::Programs);
    }
    if is_for_a_server(text) {
        return service::open(text).map(Named::Service);
    }
    if runs_on_a_host(text) {
        return Ok(Named::Host);
    }
    if runs_on_an_accelerator(text) {
        return kernels::open(text).map(Named::Kernels);
    }
    let (path, parameters) = file_and_parameters(text);
    if parameters.is_none() && simt_trace::is_gpu_trace(path) {
        return simt_trace::open(path).map(|program| Named::Programs(vec![program]));
    }
    // A named trace format decides what the file is.
    if options.trace.format.is_none() && cpu_trace::is_cpu_trace(path) {
        let options = cpu_trace::Options::read(text, parameters.unwrap_or_default())?;
        return cpu_trace::open(path, &options).map(Named::Service);
    }
    if let Some(parameters) = parameters.filter(|_| path.exists()) {
        let what = format!("`{}` takes no parameters: `{parameters}`", path.display());
        return Err(Diagnostic::new(what).help(
            "only a recorded program of a server takes one, the instructions of a job: `sort.nst:job=20000`",
        ));
    }
    if is_job_file(path) {
        return fio::parse_file(path).map(Named::Jobs);
    }
    let name = name_of(text);
    let parts = trace::parts(path)?;
    let is_there = parts.iter().any(|part| part.exists());
    if !is_there && !name.contains(['/', '.']) {
        let names = WORKLOADS.iter().map(|(name, ..)| *name).chain(program::entries().map(|e| e.name));
        let names = names.chain(service::entries().map(|e| e.name)).chain(host::entries().map(|e| e.name));
        let names = names.chain(kernels::names());
        return Err(Diagnostic::new(format!("unknown workload `{name}`")).allowed(name, names).help(
            "a shipped name, a program of a GPU (bfs1, betw-back), a program of a server (tatp:size=1GiB), a program of a host (apache-u:rate=1000), loop nests (atax:instances=6, mx1), a trace file (or its parts, A+B), a recorded program (sort.nst:job=20000), an fio job file or an inline job (fio:rw=randread,bs=4k,...)",
        ));
    }
    // A missing file is reported first, then the kind of the file before the target of its requests.
    if is_there && options.capacity == 0 {
        let plain = TraceOptions {
            format: options.trace.format.clone(),
            others: options.trace.others,
            ..TraceOptions::default()
        };
        trace::TraceReader::open(path, &plain).map_err(no_workload)?;
        reaches_flash(options)?;
    }
    Ok(Named::Trace(path.to_owned()))
}

/// Returns whether a text names a GPU program, or several side by side: one known name is enough, so that a misspelt
/// one is reported. Kernels beside other programs are programs too.
pub(crate) fn is_program(text: &str) -> bool {
    let mut names = name_of(text).split('-');
    let is_kernel = |name: &str| kernels::names().any(|kernel| kernel == name);
    names.clone().any(|name| program::entries().any(|entry| entry.name == name))
        || names.clone().count() > 1 && names.all(is_kernel)
}

/// Text without its parameters.
fn name_of(text: &str) -> &str {
    text.split_once(':').map_or(text, |(name, _)| name)
}

/// File, and the parameters after the colon. For a name with colons, the longest existing name is the file.
fn file_and_parameters(text: &str) -> (&Path, Option<&str>) {
    let parts = || text.rmatch_indices(':').map(|(at, _)| (Path::new(&text[..at]), &text[at + 1..]));
    let whole = Path::new(text);
    if whole.exists() {
        return (whole, None);
    }
    let found =
        parts().find(|(file, _)| file.exists()).or_else(|| parts().find(|(_, rest)| rest.contains('=')));
    found.map_or((whole, None), |(file, parameters)| (file, Some(parameters)))
}

/// Returns whether a text names a program of a server.
fn is_for_a_server(text: &str) -> bool {
    service::entries().any(|entry| entry.name == name_of(text))
}

/// Returns whether a text names a program of a host.
pub(crate) fn runs_on_a_host(text: &str) -> bool {
    host::entries().any(|entry| entry.name == name_of(text))
}

/// Returns whether a text names kernels of an accelerator, which others may execute as well.
pub(crate) fn runs_on_an_accelerator(text: &str) -> bool {
    kernels::names().any(|name| name == name_of(text))
}

/// Returns whether a text names something for a server: a program, or the recording of one.
pub(crate) fn runs_on_a_server(text: &str) -> bool {
    file_of(text).map_or_else(|| is_for_a_server(text), cpu_trace::is_cpu_trace)
}

/// Returns whether a text names something for a GPU: programs, or the trace of one.
pub(crate) fn is_for_a_gpu(text: &str) -> bool {
    file_of(text).map_or_else(|| is_program(text), simt_trace::is_gpu_trace)
}

/// Recognised by its name, or by its first line: a section title, which traces do not have.
fn is_job_file(path: &Path) -> bool {
    const BEGINNING: u64 = 4096;
    if path.extension().is_some_and(|e| e == "fio") {
        return true;
    }
    // A pipe can be read only once.
    if !path.is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with([';', '#']));
    read.is_ok() && first.is_some_and(|line| line.starts_with('[') && line.ends_with(']'))
}

/// File behind a user's text: a job file or a trace, without its parameters. `None` for shipped names, inline jobs and
/// programs. For a trace in parts it is the name of all: [`files_of`].
pub fn file_of(text: &str) -> Option<&Path> {
    let text = workload_of(text);
    let shipped = WORKLOADS.iter().any(|(name, ..)| *name == text);
    let named = shipped
        || text.starts_with("fio:")
        || is_program(text)
        || is_for_a_server(text)
        || runs_on_an_accelerator(text)
        || runs_on_a_host(text);
    (!named).then(|| file_and_parameters(text).0)
}

/// Files behind a user's text: like [`file_of`], with every part of a trace.
///
/// # Errors
/// A missing part of a trace.
pub fn files_of(text: &str) -> Result<Vec<PathBuf>, Diagnostic> {
    file_of(text).map_or(Ok(Vec::new()), trace::parts)
}

/// Opens a workload by a user's text: a shipped name, `fio:…`, a `.fio` file or a trace.
///
/// # Errors
/// Every error in the workload.
pub fn open(text: &str, options: &WorkloadOptions) -> Result<Opened, Diagnostic> {
    let mut opened = open_all(&[text], options, &mut |_| true)?;
    // One text makes one workload.
    opened.pop().ok_or_else(|| Diagnostic::new("no workload"))
}

/// Opens workloads that run side by side; their traces have one clock and one device. `goes_on` receives each before it
/// is read; if it returns false, this one and the rest are left out.
///
/// # Errors
/// Every error in the workloads.
pub fn open_all(
    texts: &[impl AsRef<str>],
    options: &WorkloadOptions,
    goes_on: &mut dyn FnMut(&str) -> bool,
) -> Result<Vec<Opened>, Diagnostic> {
    let (named, readers) = find_all(texts, options, goes_on)?;
    let layout = lay_out(&named, options)?;
    let mut notes = layout.notes().to_vec();
    let mut readers = readers.into_iter();
    let mut opened = Vec::with_capacity(named.len());
    for (number, (text, named)) in texts.iter().zip(named).enumerate() {
        let text = text.as_ref();
        opened.push(match named {
            Named::Host => {
                let before =
                    texts[..number].iter().filter(|other| name_of(other.as_ref()) == name_of(text)).count();
                let name = if before == 0 {
                    name_of(text).to_owned()
                } else {
                    format!("{}.{before}", name_of(text))
                };
                Opened::Host(host::open(text, &name, options.seed)?)
            }
            Named::Jobs(jobs) => {
                let mut requests = from_jobs(&jobs, &layout, options)?;
                requests.warnings.append(&mut notes);
                Opened::Requests(requests)
            }
            Named::Programs(programs) => Opened::Programs(programs),
            Named::Service(service) => Opened::Service(service),
            Named::Kernels(applications) => Opened::Kernels(applications),
            Named::Trace(_) => {
                let reader = readers.next().ok_or_else(|| Diagnostic::new("the trace was not opened"))?;
                Opened::Requests(from_trace(text, reader, options))
            }
        });
    }
    Ok(opened)
}

/// Resolves texts, and opens readers for the traces among them.
fn find_all(
    texts: &[impl AsRef<str>],
    options: &WorkloadOptions,
    goes_on: &mut dyn FnMut(&str) -> bool,
) -> Result<(Vec<Named>, Vec<TraceReader>), Diagnostic> {
    let read = texts.iter().map(AsRef::as_ref).take_while(|text| goes_on(text));
    let named: Vec<Named> = read.map(|text| find(text, options)).collect::<Result<_, _>>()?;
    let traces: Vec<&PathBuf> = named
        .iter()
        .filter_map(|named| match named {
            Named::Trace(name) => Some(name),
            _ => None,
        })
        .collect();
    let timed = options.queue_depth.is_none();
    let reading = TraceOptions { capacity: Some(options.capacity), timed, ..options.trace.clone() };
    let readers = trace::open_together(&traces, &reading)?;
    Ok((named, readers))
}

fn from_trace(text: &str, reader: TraceReader, options: &WorkloadOptions) -> Requests {
    let replay = match options.queue_depth {
        Some(depth) => Replay::Closed { depth },
        None => Replay::Open,
    };
    let source = Box::new(TraceSource::new(trace_name(text), reader, replay));
    Requests {
        source,
        warnings: Vec::new(),
        ramp: Time::ZERO,
        is_trace: true,
        to_file: false,
        files: Vec::new(),
        scheduler: None,
    }
}

/// Name of a trace's flows: its file, or `A+B` of its parts.
fn trace_name(text: &str) -> String {
    let file = |name: &str| {
        Path::new(name).file_name().map_or_else(|| name.to_owned(), |n| n.to_string_lossy().into_owned())
    };
    if Path::new(text).exists() {
        return file(text);
    }
    text.split('+').map(file).collect::<Vec<_>>().join("+")
}

/// Checks workloads without running them, traces to their last line.
///
/// # Errors
/// Every error in the workloads.
pub fn check(texts: &[impl AsRef<str>], options: &WorkloadOptions) -> Result<Checked, Diagnostic> {
    let (named, readers) = find_all(texts, options, &mut |_| true)?;
    let layout = lay_out(&named, options)?;
    let mut checked =
        Checked { has_trace: !readers.is_empty(), warnings: layout.notes().to_vec(), ..Checked::default() };
    for (text, named) in texts.iter().zip(named) {
        match named {
            Named::Jobs(jobs) => checked.warnings.extend(from_jobs(&jobs, &layout, options)?.warnings),
            Named::Host => drop(host::open(text.as_ref(), "", options.seed)?),
            Named::Kernels(applications) => checked.kernels.get_or_insert_default().extend(applications),
            _ => {}
        }
    }
    for mut reader in readers {
        while reader.next()?.is_some() {}
        checked.warnings.extend(reader.notes().warnings());
    }
    Ok(checked)
}

/// Returns whether requests have a device to go to.
fn reaches_flash(options: &WorkloadOptions) -> Result<(), Diagnostic> {
    if options.capacity > 0 {
        return Ok(());
    }
    Err(Diagnostic::new("this workload consists of block requests, but the system has no flash device that a host reaches").help(
        "give a program of a GPU or of a server, or use a system with the tables `flash`, `host` and `precondition`",
    ))
}

/// Diagnostic for a file that is neither a trace of requests nor a recorded program.
fn no_workload(mut fault: Diagnostic) -> Diagnostic {
    if fault.what.starts_with("the content fits no trace format") {
        let programs: Vec<&str> = cpu_trace::formats().map(|(_, title)| title).collect();
        fault.what = format!("not a known workload: as a trace, {}", fault.what);
        let help = fault.help.take().unwrap_or_default();
        fault = fault.help(format!("{help}; a recorded program of a server is {}", programs.join(", ")));
    }
    fault
}

/// Lays out the files of jobs that run side by side on a drive. A host's file system leaves less room.
fn lay_out(named: &[Named], options: &WorkloadOptions) -> Result<Layout, Diagnostic> {
    let jobs = || {
        named.iter().filter_map(|named| match named {
            Named::Jobs(jobs) => Some(jobs),
            _ => None,
        })
    };
    let mut room = options.capacity;
    for jobs in jobs() {
        reaches_flash(options)?;
        if jobs.ways(options.kernel.is_some())?.is_some() {
            room = room.min(options.file_bytes.clone().map_err(|fault| *fault)?);
        }
    }
    Layout::of(jobs(), room)?.over(jobs(), options.behind)
}

fn from_jobs(jobs: &fio::Jobs, layout: &Layout, options: &WorkloadOptions) -> Result<Requests, Diagnostic> {
    let inert = |o: &fio::InertOption| format!("{}: `{}` has no effect here: {}", o.job, o.option, o.reason);
    let mut warnings: Vec<String> = jobs.notes.inert.iter().map(inert).collect();
    warnings.extend(jobs.notes.warnings.iter().cloned());
    let ways = jobs.ways(options.kernel.is_some())?;
    let scheduler = jobs.scheduler()?.filter(|_| ways.is_some());
    if ways.is_none() {
        warnings.extend(jobs.unscheduled());
    }
    warnings.extend(jobs.polling(options.kernel.unwrap_or_default()));
    let to_file = ways.is_some();
    let capacity =
        if to_file { options.file_bytes.clone().map_err(|fault| *fault)? } else { options.capacity };
    let source = FioSource::on(layout, jobs, capacity, options.seed)?.to_file(ways);
    warnings.extend_from_slice(source.doubts());
    let files = if to_file && layout.is_whole() { layout.files().collect() } else { Vec::new() };
    Ok(Requests {
        ramp: source.ramp(),
        source: Box::new(source),
        warnings,
        is_trace: false,
        to_file,
        files,
        scheduler,
    })
}
