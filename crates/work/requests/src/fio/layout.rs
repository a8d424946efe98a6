//! Placement of job files on a drive: one after another, in the order in which fio encounters them.
//!
//! A file is as long as its jobs need it (`offset` + `size`, or `filesize`); files with equal names are one file. A
//! job covers the whole drive if it names a device, or is on the command line without a file option. It also does if
//! fio could not lay out its file: the job trims, or no job gives the file's length in bytes.

use std::collections::BTreeMap;

use config::Diagnostic;
use serde::Serialize;

use super::Behind;
use super::spec::{JobSpec, Jobs, Pattern};
use super::value::Quantity;
use crate::synth::{Purpose, Region, Stream};

/// Alignment of files in bytes: the block of a file system.
const BLOCK: u64 = 4096;

/// Maximum number of files of all jobs: *chosen*.
const MOST_FILES: usize = 1 << 20;

/// Adjacent files that belong to the same jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaidOut {
    /// Name of the first file.
    pub name: String,
    /// Number of files.
    pub files: u64,
    /// First byte on the drive.
    pub start: u64,
    /// Bytes from `start` to the end of the last file.
    pub bytes: u64,
    /// Jobs that access the files.
    pub jobs: Vec<String>,
}

/// A file.
#[derive(Clone, Debug, Default)]
struct File {
    start: u64,
    bytes: u64,
    jobs: Vec<String>,
}

/// Files of the jobs of one drive.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Names in the order in which they were encountered.
    names: Vec<String>,
    files: BTreeMap<String, File>,
    /// Drives named by lists, in the order in which they were encountered, and the stripe over them.
    drives: Vec<String>,
    behind: Option<Behind>,
    /// True if every job has files.
    whole: bool,
    /// Remarks for the result.
    notes: Vec<String>,
}

impl Layout {
    /// Lays out the files of jobs on a drive with `room` bytes.
    ///
    /// # Errors
    /// If the files do not fit.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Jobs>, room: u64) -> Result<Layout, Diagnostic> {
        let specs: Vec<&JobSpec> = all.into_iter().flat_map(|jobs| &jobs.jobs).collect();
        let mut layout = Layout { whole: true, ..Layout::default() };
        let clones = |spec: &JobSpec| 0..spec.numjobs;
        for spec in &specs {
            for clone in clones(spec) {
                layout.meet(spec, clone)?;
            }
        }
        // A file without a length from any job is left out, and its jobs cover the whole drive.
        layout.names.retain(|name| layout.files[name].bytes > 0);
        for spec in &specs {
            let laid = clones(spec).all(|clone| layout.regions(spec, clone).is_some());
            layout.whole &= laid;
            layout.notes.extend(if laid { None } else { spec.without_a_file() });
        }
        layout.place(&specs, room)?;
        layout.overlap(&specs);
        Ok(layout)
    }

    /// Adds the files of a clone, each at least as long as the clone needs.
    fn meet(&mut self, spec: &JobSpec, clone: u16) -> Result<(), Diagnostic> {
        let Some(names) = spec.file_names(clone) else { return Ok(()) };
        if self.names.len() + names.len() > MOST_FILES {
            let what = format!("job `{}`: more than {MOST_FILES} files in all", spec.name);
            return Err(Diagnostic::new(what).at(spec.place_of("nrfiles")));
        }
        let count = names.len() as u64;
        for (number, name) in (0..).zip(names) {
            let bytes = spec.length_of_file(number, count, clone);
            let file = self.files.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                File::default()
            });
            file.bytes = file.bytes.max(bytes.unwrap_or(0));
            if !file.jobs.contains(&spec.name) {
                file.jobs.push(spec.name.clone());
            }
        }
        Ok(())
    }

    /// Assigns a place to every file.
    fn place(&mut self, specs: &[&JobSpec], room: u64) -> Result<(), Diagnostic> {
        let (mut end, mut bytes) = (0u128, 0u128);
        for name in &self.names {
            if let Some(file) = self.files.get_mut(name) {
                let start = end.next_multiple_of(BLOCK.into());
                file.start = start as u64;
                bytes += u128::from(file.bytes);
                end = start + u128::from(file.bytes);
            }
        }
        let over = end > room.into();
        let Some(spec) = specs.iter().find(|spec| over && spec.file_names(0).is_some()) else {
            return Ok(());
        };
        let count = self.names.len() as u64;
        let (files, lies) = if count == 1 { ("file", "") } else { ("files", " in all") };
        let what = format!(
            "the jobs lay out {count} {files} of {bytes} bytes{lies}, but the drive has room for {room}"
        );
        let each = room / count / BLOCK * BLOCK;
        let help = format!(
            "{count} equal {files} of {each} bytes would fit; filename=/dev/nvme0n1 runs a job over the whole drive without files"
        );
        let option = if spec.files.bytes.is_some() { "filesize" } else { "size" };
        Err(Diagnostic::new(what).at(spec.place_of(option)).help(help))
    }

    /// Notes the jobs that cover the whole drive and overlap files of other jobs.
    fn overlap(&mut self, specs: &[&JobSpec]) {
        let names = |laid: bool| -> Vec<String> {
            let of = specs.iter().filter(|spec| self.regions(spec, 0).is_some() == laid);
            let mut names: Vec<String> = of.map(|spec| format!("`{}`", spec.name)).collect();
            names.dedup();
            names
        };
        let (with, without) = (names(true), names(false));
        if !with.is_empty() && !without.is_empty() {
            self.notes.push(format!(
                "{} cover the whole drive, which also holds the files of {}: both touch the same blocks",
                without.join(", "),
                with.join(", ")
            ));
        }
    }

    /// Lays out files on a striped drive: the drives named by a list are those of the stripe, in the order of their
    /// names.
    ///
    /// # Errors
    /// If a list names more drives than the stripe has.
    pub fn over<'a>(
        mut self,
        all: impl IntoIterator<Item = &'a Jobs>,
        behind: Option<Behind>,
    ) -> Result<Layout, Diagnostic> {
        let Some(stripe) = behind else { return Ok(self) };
        for spec in all.into_iter().flat_map(|jobs| &jobs.jobs) {
            for name in spec.drives().unwrap_or_default() {
                if !self.drives.iter().any(|known| known == name) {
                    self.drives.push(name.to_owned());
                }
            }
            if self.drives.len() as u64 > stripe.drives {
                let why = format!("{} are behind the stripe", stripe.drives);
                return Err(
                    spec.refuse_drives(&why, "jobs may name each of them; other names are other drives")
                );
            }
        }
        self.behind = behind;
        Ok(self)
    }

    /// Returns the stripe over the drives of lists.
    pub fn behind(&self) -> Option<Behind> {
        self.behind
    }

    /// Returns the drives of a list, in order.
    fn listed(&self, spec: &JobSpec) -> Option<Vec<Region>> {
        let bytes = self.behind?.bytes;
        let drive = |name: &&str| self.drives.iter().position(|known| known == name);
        let region = |number: usize| Region { start: number as u64 * bytes, bytes };
        Some(spec.drives()?.iter().filter_map(drive).map(region).collect())
    }

    /// Returns the files of a clone, or the drives of its list; none if it covers the whole drive.
    pub(super) fn regions(&self, spec: &JobSpec, clone: u16) -> Option<Vec<Region>> {
        if let Some(drives) = self.listed(spec) {
            return Some(drives);
        }
        let region = |name: &String| {
            let file = self.files.get(name).filter(|file| file.bytes > 0)?;
            Some(Region { start: file.start, bytes: file.bytes })
        };
        spec.file_names(clone)?.iter().map(region).collect()
    }

    /// Returns true if every job has files and none covers the whole drive.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns every file, in the order of its place.
    pub fn files(&self) -> impl Iterator<Item = Region> + '_ {
        self.names
            .iter()
            .map(|name| &self.files[name])
            .map(|file| Region { start: file.start, bytes: file.bytes })
    }

    /// Returns the layout, with adjacent files of the same jobs merged.
    pub fn laid_out(&self) -> Vec<LaidOut> {
        let mut all: Vec<LaidOut> = Vec::new();
        for name in &self.names {
            let File { start, bytes, jobs } = &self.files[name];
            match all.last_mut() {
                Some(last) if last.jobs == *jobs && last.start + last.bytes == *start => {
                    last.files += 1;
                    last.bytes += bytes;
                }
                _ => all.push(LaidOut {
                    name: name.clone(),
                    files: 1,
                    start: *start,
                    bytes: *bytes,
                    jobs: jobs.clone(),
                }),
            }
        }
        all
    }

    /// Returns remarks on the layout for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl JobSpec {
    /// Returns the minimum bytes of file `number` of a clone; none if the job does not say.
    fn length_of_file(&self, number: u64, count: u64, clone: u16) -> Option<u64> {
        let block = self.least_block();
        if let Some((low, high)) = self.files.bytes {
            // As in `get_rand_file_size`, with a seed that does not depend on the run's.
            let seed = self.randseed.unwrap_or(0) ^ u64::from(clone).rotate_left(40) ^ number;
            let drawn = low + Stream::new(seed, Purpose::FileSize).below(high - low + 1);
            return Some(if low == high { low } else { (drawn - drawn % block).max(low) });
        }
        let bytes = self.bytes_of_file(number, count, block)?;
        // A percentage of a file that does not exist yet is zero.
        let of = |quantity| match quantity {
            Quantity::Bytes(bytes) => bytes,
            Quantity::Percent(_) => 0,
        };
        let step = of(self.offset_increment).saturating_mul(clone.into());
        Some(of(self.offset).saturating_add(step).saturating_add(bytes))
    }

    /// Returns why the job covers the whole drive although it names no device.
    fn without_a_file(&self) -> Option<String> {
        let names = self.file_names(0);
        let trims = matches!(self.rw.pattern, Pattern::Trim | Pattern::TrimWrite);
        if trims && self.files.device().is_none() && !self.files.inline {
            return Some(format!(
                "job `{}` trims, and fio trims only devices: it covers the whole drive, as with filename=/dev/nvme0n1",
                self.name
            ));
        }
        let first = names?.into_iter().next()?;
        let option = if self.files.names.is_empty() { "" } else { " (filename)" };
        Some(format!(
            "job `{}`: size is not given in bytes, so fio would refuse to lay out its file `{first}`{option}; here the job covers the whole drive, as \
             with filename=/dev/nvme0n1",
            self.name
        ))
    }
}
