//! Kernels of a run with their kinds and durations.

use crate::read;
use config::Diagnostic;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// Maximum plausible duration of a kernel: eleven and a half days. Its square does not overflow.
const LONGEST_NS: f64 = 1e15;

/// Maximum number of kernels of a profile; indices have 32 bits.
const MOST: usize = u32::MAX as usize;

/// Sizes of a grid (in blocks) or of a block (in threads): x, y, z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
pub struct Dims(pub [u32; 3]);

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        f.pad(&format!("{x}x{y}x{z}"))
    }
}

/// Properties shared by the kernels of a group before any splitting.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kind {
    /// Name of the kernel, with all of its arguments.
    pub name: String,
    /// Grid; `None` if the profile does not record it (launches through graphs).
    pub grid: Option<Dims>,
    /// Block; `None` if the profile does not record it.
    pub block: Option<Dims>,
}

/// Source format of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Our kernel CSV: `id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name`.
    KernelCsv,
    /// A Chrome trace of PyTorch's profiler (Kineto): events of category `kernel`.
    ChromeTrace,
    /// `nsys stats --report cuda_gpu_trace --format csv` of Nsight Systems.
    NsysGpuTrace,
    /// `nsys stats --report cuda_kern_exec_trace --format csv` of Nsight Systems.
    NsysKernelTrace,
    /// `ncu --csv` of Nsight Compute, one row per metric (`--page details`, or metrics by name).
    NcuMetrics,
    /// `ncu --csv --page raw` of Nsight Compute, one row per kernel.
    NcuRaw,
    /// Kernels added by a program, without a file.
    Memory,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::KernelCsv => "kernel CSV",
            Format::ChromeTrace => "Chrome trace",
            Format::NsysGpuTrace => "Nsight Systems, cuda_gpu_trace",
            Format::NsysKernelTrace => "Nsight Systems, cuda_kern_exec_trace",
            Format::NcuMetrics => "Nsight Compute, one row per metric",
            Format::NcuRaw => "Nsight Compute, raw page",
            Format::Memory => "kernels of a program",
        })
    }
}

/// Kernels of a run in order of their starts, 12 bytes each.
#[derive(Clone, Debug)]
pub struct Profile {
    format: Format,
    kinds: Vec<Kind>,
    /// Index into `kinds`, for each kernel.
    kind_of: Vec<u32>,
    /// Durations in nanoseconds, for each kernel.
    ns: Vec<f64>,
    known: FxHashMap<Box<[u8]>, u32>,
    key: Vec<u8>,
    remarks: Vec<String>,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile::new(Format::Memory)
    }
}

impl Profile {
    pub(crate) fn new(format: Format) -> Profile {
        Profile {
            format,
            kinds: Vec::new(),
            kind_of: Vec::new(),
            ns: Vec::new(),
            known: FxHashMap::default(),
            key: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Reads a profile, plain or gzip, in any of the formats of [`Format`], detected from its content.
    ///
    /// # Errors
    /// The file cannot be read, is truncated, has an unknown format or no kernels, or a kernel lacks a usable name,
    /// grid, block or duration.
    pub fn read(path: &Path) -> Result<Profile, Diagnostic> {
        read::file(path)
    }

    /// Reads a profile from bytes, like [`Profile::read`]; `source` names them in diagnostics.
    ///
    /// # Errors
    /// The errors of [`Profile::read`].
    pub fn from_reader(source: &str, bytes: impl std::io::Read) -> Result<Profile, Diagnostic> {
        read::stream(source, bytes)
    }

    /// Appends a kernel.
    ///
    /// # Errors
    /// The duration is negative, not a number or above 10^15 ns; or the profile is full.
    pub fn push(
        &mut self,
        name: &str,
        grid: Option<Dims>,
        block: Option<Dims>,
        duration_ns: f64,
    ) -> Result<(), Diagnostic> {
        check(duration_ns)?;
        if self.ns.len() >= MOST {
            return Err(Diagnostic::new("the profile has more than 2^32 - 1 kernels")
                .help("cut it: a part of the run with the same kernels suffices to choose samples"));
        }
        let kind = self.intern(name, grid, block);
        self.kind_of.push(kind);
        // Adding zero turns -0.0 into 0.0, so that equal durations are equal bit for bit.
        self.ns.push(duration_ns + 0.0);
        Ok(())
    }

    fn intern(&mut self, name: &str, grid: Option<Dims>, block: Option<Dims>) -> u32 {
        self.key.clear();
        for dims in [grid, block] {
            self.key.push(u8::from(dims.is_some()));
            for side in dims.map_or([0; 3], |dims| dims.0) {
                self.key.extend_from_slice(&side.to_le_bytes());
            }
        }
        self.key.extend_from_slice(name.as_bytes());
        if let Some(kind) = self.known.get(self.key.as_slice()) {
            return *kind;
        }
        let kind = self.kinds.len() as u32;
        self.kinds.push(Kind { name: name.to_owned(), grid, block });
        self.known.insert(self.key.as_slice().into(), kind);
        kind
    }

    /// Number of kernels.
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    /// Returns whether the profile has no kernels.
    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// Source format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Kinds of kernels: name, grid and block, in order of their first kernel.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Index of each kernel's kind in [`Profile::kinds`], in order of starts.
    pub fn kind_of(&self) -> &[u32] {
        &self.kind_of
    }

    /// Durations in nanoseconds, in order of starts.
    pub fn durations_ns(&self) -> &[f64] {
        &self.ns
    }

    /// Sum of all durations in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.ns.iter().sum()
    }

    /// Remarks on the profile: rows that are not kernels, kernels without a grid, durations of zero.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.remarks.clone();
        let bare = self.kind_of.iter().filter(|kind| self.kinds[**kind as usize].grid.is_none()).count();
        if bare > 0 {
            remarks.push(format!(
                "{bare} kernels have no grid and block: they are grouped by their remaining properties"
            ));
        }
        let zeros = self.ns.iter().filter(|ns| **ns == 0.0).count();
        if zeros > 0 {
            remarks
                .push(format!("{zeros} kernels have a duration of zero: shorter than the profiler's clock"));
        }
        if self.ns.len() > 1 && self.ns.iter().all(|ns| ns % 1000.0 == 0.0) {
            remarks.push("all durations are whole microseconds".to_owned());
        }
        remarks
    }

    pub(crate) fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    /// Sorts the kernels by start, stably.
    pub(crate) fn sort_by_start(&mut self, starts: &[f64]) {
        if starts.is_sorted() {
            return;
        }
        let mut order: Vec<u32> = (0..starts.len() as u32).collect();
        order.sort_unstable_by(|a, b| starts[*a as usize].total_cmp(&starts[*b as usize]).then(a.cmp(b)));
        self.kind_of = order.iter().map(|at| self.kind_of[*at as usize]).collect();
        self.ns = order.iter().map(|at| self.ns[*at as usize]).collect();
    }

    /// Frees the memory that only reading needs.
    pub(crate) fn finish(&mut self) {
        self.kind_of.shrink_to_fit();
        self.ns.shrink_to_fit();
    }
}

/// # Errors
/// The duration is impossible for a kernel.
pub(crate) fn check(duration_ns: f64) -> Result<(), Diagnostic> {
    let what = if duration_ns.is_nan() {
        "the duration is not a number".to_owned()
    } else if duration_ns < 0.0 {
        format!("the duration is negative: {duration_ns} ns")
    } else if duration_ns > LONGEST_NS {
        format!("the duration is {duration_ns} ns, more than eleven days")
    } else {
        return Ok(());
    };
    let mut diagnostic = Diagnostic::new(what);
    diagnostic.allowed = vec!["0 to 1e15 ns".to_owned()];
    Err(diagnostic)
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Option<Dims> = Some(Dims([4, 1, 1]));

    #[test]
    fn a_kind_is_name_grid_and_block() {
        let mut profile = Profile::default();
        for (name, grid, block) in [
            ("a", G, G),
            ("b", G, G),
            ("a", None, G),
            ("a", G, None),
            ("a", G, Some(Dims([5, 1, 1]))),
            ("a", G, G),
        ] {
            profile.push(name, grid, block, 1.0).unwrap();
        }
        assert_eq!(profile.kind_of(), [0, 1, 2, 3, 4, 0]);
        assert_eq!(profile.kinds().len(), 5);
    }

    #[test]
    fn unusable_durations_are_refused() {
        let mut profile = Profile::default();
        for (ns, said) in [(f64::NAN, "not a number"), (-1.0, "negative"), (f64::INFINITY, "eleven days")] {
            let fault = profile.push("k", G, G, ns).unwrap_err();
            assert!(fault.what.contains(said), "{fault}");
        }
        profile.push("k", G, G, -0.0).unwrap();
        assert!(profile.durations_ns()[0].is_sign_positive());
    }

    #[test]
    fn order_of_starts() {
        let mut profile = Profile::default();
        for (name, ns) in [("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 4.0)] {
            profile.push(name, G, G, ns).unwrap();
        }
        profile.sort_by_start(&[7.0, 1.0, 7.0, 2.0]);
        assert_eq!(profile.durations_ns(), [1.0, 4.0, 3.0, 2.0]);
    }
}
