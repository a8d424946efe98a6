//! Files of a job: fio's `filename`, `nrfiles`, `filesize` and related options.

use config::Diagnostic;

use super::distribution::parse_popularity;
use super::spec::{Engine, JobSpec, Pattern};
use super::table::{FioOption, honoured};
use super::value::{Quantity, Value};
use crate::synth::Service;

type Set = Result<(), Diagnostic>;

/// Maximum number of files of one clone: *chosen*.
const MOST_FILES: u64 = 1 << 20;

/// Rows of the table.
pub(super) const FILES: &[FioOption] = &[
    honoured(
        "filename",
        None,
        filename,
        "/dev/...: the drive; any other name: a file of `size` bytes on it, shared by all jobs that name it; colons separate several names",
    )
    .list(),
    honoured(
        "filename_format",
        None,
        filename_format,
        "pattern of file names without `filename`, from $jobname, $jobnum and $filenum; equal names are one file",
    ),
    honoured("directory", None, directory, "prefix of file names; several go to clones in turn"),
    honoured("nrfiles", Some("nr_files"), nrfiles, "files per clone; `size` is divided among them"),
    honoured("filesize", None, filesize, "bytes per file, or a range from which each file draws its size"),
    honoured("openfiles", None, openfiles, "files in use at a time; the next starts when one is done"),
    honoured(
        "file_service_type",
        None,
        file_service_type,
        "choice of the next file: roundrobin, random, sequential, with :N requests per file; zipf, pareto, normal (gauss), as in random_distribution",
    ),
];

/// Files that a job accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSpec {
    /// True if the job is on the command line: it then covers the whole drive unless an option asks for files.
    pub inline: bool,
    /// Names given by `filename`; empty if absent.
    pub names: Vec<String>,
    /// Value of `filename_format`.
    pub format: Option<String>,
    /// Names given by `directory`; empty if absent.
    pub directories: Vec<String>,
    /// Value of `nrfiles`.
    pub number: u64,
    /// Range of `filesize`, in bytes: minimum and maximum.
    pub bytes: Option<(u64, u64)>,
    /// Value of `openfiles`, if given.
    pub open: Option<u64>,
    /// Value of `file_service_type`.
    pub service: Service,
    /// Requests per file before the next file is chosen.
    pub each: u64,
}

impl FileSpec {
    /// One file per job, the default without options.
    pub(super) const DEFAULT: FileSpec = FileSpec {
        inline: false,
        names: Vec::new(),
        format: None,
        directories: Vec::new(),
        number: 1,
        bytes: None,
        open: None,
        service: Service::RoundRobin,
        each: 1,
    };

    fn asks(&self) -> bool {
        let has_names = !self.names.is_empty() || self.format.is_some() || !self.directories.is_empty();
        has_names || self.number > 1 || self.bytes.is_some()
    }

    /// Returns the device that the job names, if any: `/dev/nvme0n1`, `\\.\PhysicalDrive0`, an SPDK address.
    pub(super) fn device(&self) -> Option<&str> {
        self.names.iter().map(String::as_str).find(|name| is_device(name))
    }

    fn within(&self, name: &str, clone: u16) -> String {
        let at = if self.names.is_empty() { usize::from(clone) % self.directories.len().max(1) } else { 0 };
        self.directories
            .get(at)
            .map_or_else(|| name.to_owned(), |d| format!("{}/{name}", d.trim_end_matches('/')))
    }
}

impl JobSpec {
    /// Returns the file names of a clone; none if it covers the whole drive.
    pub(super) fn file_names(&self, clone: u16) -> Option<Vec<String>> {
        let files = &self.files;
        let trims = matches!(self.rw.pattern, Pattern::Trim | Pattern::TrimWrite);
        let of_devices = self.engine == Some(Engine::Passthrough);
        if files.inline && !files.asks() || trims || of_devices || files.device().is_some() {
            return None;
        }
        if !files.names.is_empty() {
            let names: Vec<String> = files.names.iter().map(|name| files.within(name, clone)).collect();
            return (!names.iter().any(|name| is_device(name))).then_some(names);
        }
        // fio treats the name of a job with a single file as a device if it looks like one.
        if files.number == 1 && is_device(&self.name) {
            return None;
        }
        let format = files.format.as_deref().unwrap_or("$jobname.$jobnum.$filenum");
        let name = |number: u64| {
            let name = format.replace("$jobname", &self.name).replace("$jobnum", &clone.to_string());
            files.within(&name.replace("$filenum", &number.to_string()), clone)
        };
        Some((0..files.number).map(name).collect())
    }

    /// Returns the bytes that the job needs in file `number` of its `count`, from its `offset` on; none if only the
    /// file's size says it. As in fio's `setup_files`, the remainder of the division makes the first files one block
    /// longer.
    pub(super) fn bytes_of_file(&self, number: u64, count: u64, block: u64) -> Option<u64> {
        let Some(Quantity::Bytes(bytes @ 1..)) = self.size else { return None };
        let each = bytes / count;
        let longer = (bytes - each * count) / block;
        Some(each + if number < longer { block } else { 0 }).filter(|bytes| *bytes > 0)
    }
}

fn is_device(name: &str) -> bool {
    let at = |start: &str| name.starts_with(start);
    at("/dev/") && !at("/dev/shm/") || at(r"\\.\") || at("trtype=") || at("traddr=")
}

/// Splits names at colons; `\:` is a colon within a name.
fn names(text: &str) -> Vec<String> {
    const COLON: &str = "\u{0}";
    let parts = text.replace("\\:", COLON);
    parts.split(':').map(|name| name.trim().replace(COLON, ":")).filter(|name| !name.is_empty()).collect()
}

fn filename(job: &mut JobSpec, v: Value) -> Set {
    let text = v.text()?;
    // SPDK addresses contain colons and equals signs.
    let found =
        if is_device(text) && !text.starts_with("/dev/") { vec![text.to_owned()] } else { names(text) };
    let devices = found.iter().filter(|name| is_device(name)).count();
    if devices > 0 && devices < found.len() {
        let what = format!("`{text}` names {devices} devices and {} other files", found.len() - devices);
        return Err(Diagnostic::new(what).help("give only devices, or only files to lay out on the drive"));
    }
    job.files.names = found;
    Ok(())
}

fn filename_format(job: &mut JobSpec, v: Value) -> Set {
    const KNOWN: [&str; 4] = ["$jobname", "$jobnum", "$filenum", "$clientuid"];
    let text = v.text.unwrap_or_default().trim();
    let unknown = KNOWN.iter().fold(text.to_owned(), |text, word| text.replace(word, ""));
    if let Some(at) = unknown.find('$') {
        let word: String = unknown[at..].chars().take_while(|c| *c == '$' || c.is_alphanumeric()).collect();
        return Err(Diagnostic::new(format!("`{word}` is not a keyword of file names")).allowed(&word, KNOWN));
    }
    job.files.format = (!text.is_empty()).then(|| text.replace("$clientuid", ""));
    Ok(())
}

fn directory(job: &mut JobSpec, v: Value) -> Set {
    job.files.directories = names(v.text()?);
    Ok(())
}

fn nrfiles(job: &mut JobSpec, v: Value) -> Set {
    job.files.number = v.number(1, MOST_FILES)?;
    Ok(())
}

fn filesize(job: &mut JobSpec, v: Value) -> Set {
    let text = v.text()?;
    let (low, high) = text.split_once(['-', ':']).unwrap_or((text, text));
    let (low, high) = (v.with(low.trim()).some_bytes()?, v.with(high.trim()).some_bytes()?);
    job.files.bytes = Some((low.min(high), low.max(high)));
    Ok(())
}

fn openfiles(job: &mut JobSpec, v: Value) -> Set {
    job.files.open = Some(v.number(1, MOST_FILES)?);
    Ok(())
}

fn file_service_type(job: &mut JobSpec, v: Value) -> Set {
    let text = v.text()?;
    let (word, each) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
    let named = if word == "gauss" { text.replacen("gauss", "normal", 1) } else { text.to_owned() };
    if let Some((popularity, center)) = parse_popularity(v.with(&named))? {
        job.files.service = Service::Skewed { popularity, center };
        job.files.each = 1;
        return Ok(());
    }
    let skewed = ["zipf", "pareto", "normal", "gauss"];
    let plain = ["roundrobin", "random", "sequential"];
    if !plain.contains(&word) {
        let what = format!("unknown value `{word}`");
        return Err(Diagnostic::new(what).allowed(word, plain.into_iter().chain(skewed)));
    }
    job.files.service = v.with(word).word(&[
        ("roundrobin", Service::RoundRobin),
        ("random", Service::Random),
        ("sequential", Service::Sequential),
    ])?;
    job.files.each = each.map_or(Ok(1), |number| v.with(number).number(1, u32::MAX as u64))?;
    Ok(())
}
