//! Properties of a program before it runs: its arrays, its parts, and their costs. Misses of a kernel are sampled once
//! per process.

use super::GROUP;
use super::memory::Misses;
use super::recorded::Recorded;
use super::spec::{AcceleratorSums, AcceleratorWork, CoreSpec};
use crate::vliw::{
    issue::{ByUnit, LoopCycles},
    spec::CacheSpec,
    stalls::Stalls,
};
use config::SpecError;
use engine::Known;
use nest::executed::{Area, Executed};
use nest::{Array, Counts, Kernel, Paper, Piece};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Most sections of a program on an accelerator, or of a microblock on a coprocessor: *chosen*. A program whose blocks
/// fit has thousands; where an outer loop's iteration does not fit, its inner loops are divided instead, and their data
/// move for every few operations.
const MOST_SECTIONS: usize = 1 << 18;

/// Source of a program's amount of work.
#[derive(Clone, Copy)]
pub(super) struct Costing<'s> {
    pub(super) core: &'s CoreSpec,
    pub(super) work: AcceleratorWork,
    pub(super) sums: AcceleratorSums,
    /// Accesses of each loop that are measured where caches are sampled.
    pub(super) sample: u64,
}

/// Program, with the costs of its parts.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) arrays: Vec<Area>,
    source: Source,
}

/// Source of the parts' costs.
enum Source {
    /// Loop nest.
    Nested(Box<Nested>),
    /// Recorded execution.
    Recorded(Arc<Recorded>),
}

/// Part of a program: a screen or a section of one.
#[expect(clippy::large_enum_variant, reason = "parts of a screen are one flat list; nearly all are of nests")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Piece of a loop nest.
    Nested(Piece),
    /// Range of recorded pieces.
    Recorded { from: usize, below: usize },
}

impl From<std::ops::Range<usize>> for Part {
    fn from(pieces: std::ops::Range<usize>) -> Part {
        Part::Recorded { from: pieces.start, below: pieces.end }
    }
}

/// Cost of a piece on its core and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Cycles in which the core issues.
    pub(super) issue: u64,
    /// Cycles for which the core waits for its caches.
    pub(super) stall: u64,
    /// Bytes between its caches and memory.
    pub(super) bytes: u64,
}

impl Cost {
    /// Cost of a part that issues for `issue` cycles, with these cache misses.
    fn of(issue: u64, misses: Misses, core: &CoreSpec) -> Cost {
        let lines = misses.second + misses.ahead + misses.written;
        Cost { issue, stall: core.stall(&misses), bytes: lines * core.l2.line.get() }
    }
}

impl Program {
    /// Creates a program from a kernel whose microblocks are dealt out to at most `most` cores.
    ///
    /// # Errors
    /// A cache that cannot be built; work by a table without an entry for the kernel.
    pub(super) fn new(kernel: Kernel, by: &Costing<'_>, most: u64) -> Result<Program, SpecError> {
        let nested = Nested::new(kernel, by, most)?;
        let kernel = &nested.kernel;
        let area =
            |array: &Array| Area { name: array.name.clone(), bytes: array.bytes(), section: array.section };
        Ok(Program {
            name: kernel.name().to_owned(),
            arrays: kernel.arrays().iter().map(area).collect(),
            source: Source::Nested(Box::new(nested)),
        })
    }

    /// Creates a program that is executed on its data, in sections of at most `room` page groups.
    ///
    /// # Errors
    /// A cache that cannot be built; work by a table; a piece that exceeds a section.
    pub(super) fn executed(
        program: &Arc<dyn Executed>,
        by: &Costing<'_>,
        room: u64,
    ) -> Result<Program, SpecError> {
        let name = program.name();
        if by.work == AcceleratorWork::table {
            let what = format!("no table gives the work of `{name}`");
            return Err(SpecError::new("work", what)
                .help("set `work = \"nest\"` to count the program's own operations"));
        }
        let recorded = heard(program, by.core)?;
        let most = recorded.largest() as u64;
        if most > room {
            let what =
                format!("a piece of `{name}` touches {most} page groups, but a section has room for {room}");
            return Err(SpecError::new("memory.size", what)
                .help("use less data, fewer sections ahead, or more memory"));
        }
        Ok(Program { name: name.to_owned(), arrays: program.arrays(), source: Source::Recorded(recorded) })
    }

    /// Number of microblocks.
    pub(super) fn microblocks(&self) -> usize {
        match &self.source {
            Source::Nested(of) => of.kernel.microblocks().len(),
            Source::Recorded(of) => of.microblocks(),
        }
    }

    /// Screens of a microblock, at most `most`.
    pub(super) fn screens(&self, microblock: usize, most: u64) -> Vec<Part> {
        match &self.source {
            Source::Nested(of) => of.kernel.screens(microblock, most).map(Part::Nested).collect(),
            Source::Recorded(of) => of.screens(microblock, most).map(Part::from).collect(),
        }
    }

    /// Returns whether the parts of a microblock may run at once.
    pub(super) fn is_split(&self, microblock: usize) -> bool {
        match &self.source {
            Source::Nested(of) => of.kernel.microblocks()[microblock].split.is_some(),
            Source::Recorded(of) => of.is_split(microblock),
        }
    }

    /// Divides a section of a whole microblock into at most `most` parts that may run at once.
    pub(super) fn dealt(&self, section: &Part, most: u64) -> Vec<Part> {
        match (&self.source, section) {
            (Source::Nested(of), Part::Nested(piece)) => {
                of.kernel.dealt(piece, most).into_iter().map(Part::Nested).collect()
            }
            (Source::Recorded(of), Part::Recorded { from, below }) => {
                of.dealt(*from..*below, most).map(Part::from).collect()
            }
            _ => unreachable!("a part of another program"),
        }
    }

    /// Appends the sections of a screen, in order, whose page groups have at most `budget` bytes.
    ///
    /// # Errors
    /// More sections than a program may have.
    pub(super) fn sections(&self, screen: Part, budget: u64, into: &mut Vec<Part>) -> Result<(), SpecError> {
        match (&self.source, screen) {
            (Source::Nested(of), Part::Nested(piece)) => {
                let left = MOST_SECTIONS + 1 - into.len().min(MOST_SECTIONS);
                into.extend(of.kernel.sections(piece, budget, GROUP).take(left).map(Part::Nested));
            }
            (Source::Recorded(of), Part::Recorded { from, below }) => {
                let sections = of.sections(from..below, (budget / GROUP) as usize);
                into.extend(sections.into_iter().map(Part::from));
            }
            _ => unreachable!("a part of another program"),
        }
        if into.len() > MOST_SECTIONS {
            Err(self.falls_apart(&into[MOST_SECTIONS], budget / GROUP))
        } else {
            Ok(())
        }
    }

    /// Error for too many sections, each with room for `room` page groups.
    #[cold]
    fn falls_apart(&self, section: &Part, room: u64) -> SpecError {
        let mut touched = BTreeSet::new();
        self.touches(section, |array, groups, _, _| touched.extend(groups.map(|group| (array, group))));
        if touched.len() as u64 > room {
            return self.too_large(touched.len(), room);
        }
        let what = format!(
            "`{}` needs more than {MOST_SECTIONS} sections: one has room for {room} page groups of {} KiB",
            self.name,
            GROUP >> 10
        );
        let help = "use more memory, fewer sections ahead, or loops that touch less data between reuses";
        SpecError::new("memory.size", what).help(help)
    }

    /// Error for an indivisible part that touches more page groups than there is room for.
    pub(super) fn too_large(&self, groups: usize, room: u64) -> SpecError {
        let what = format!(
            "an indivisible part of `{}` touches {groups} page groups of {} KiB, but memory has room for {room}",
            self.name,
            GROUP >> 10
        );
        SpecError::new("memory.size", what).help("use smaller arrays, or more memory")
    }

    /// Calls with the page groups that a part touches, by array, and whether it reads and writes them; some may repeat.
    pub(super) fn touches(&self, part: &Part, mut call: impl FnMut(usize, RangeInclusive<u32>, bool, bool)) {
        match (&self.source, part) {
            (Source::Nested(of), Part::Nested(piece)) => {
                for extent in of.kernel.footprint(piece) {
                    for bytes in extent.ranges() {
                        let groups = (bytes.start / GROUP) as u32..=((bytes.end - 1) / GROUP) as u32;
                        call(extent.array, groups, extent.reads, extent.writes);
                    }
                }
            }
            (Source::Recorded(of), Part::Recorded { from, below }) => {
                for touch in of.touched(*from..*below) {
                    call(touch.array as usize, touch.group..=touch.group, touch.reads, touch.writes);
                }
            }
            _ => unreachable!("a part of another program"),
        }
    }

    /// Cost of a part; `begins` if caches are empty. `scratch` is overwritten.
    pub(super) fn cost(&self, part: &Part, begins: bool, core: &CoreSpec, scratch: &mut Vec<u64>) -> Cost {
        match (&self.source, part) {
            (Source::Nested(of), Part::Nested(piece)) => of.cost(piece, begins, core, scratch),
            (Source::Recorded(of), Part::Recorded { from, below }) => {
                let (cycles, misses) = of.cost(*from..*below);
                Cost::of(cycles, misses, core)
            }
            _ => unreachable!("a part of another program"),
        }
    }
}

// Recordings of programs that are executed on their data, made once per process: runs of a study have the same data on
// the same cores.

/// Key of a recording: a program is equal only if it is the same object in memory, so data are not compared.
struct Heard {
    program: Arc<dyn Executed>,
    core: CoreSpec,
}

impl PartialEq for Heard {
    fn eq(&self, other: &Heard) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.program), Arc::as_ptr(&other.program)) && self.core == other.core
    }
}

/// Recordings of a study. Their data stay as long as they do.
static HEARD: Known<Heard, Arc<Recorded>> = Known::new(4);

/// Recording of a program on a core.
///
/// # Errors
/// A cache that cannot be built.
fn heard(program: &Arc<dyn Executed>, core: &CoreSpec) -> Result<Arc<Recorded>, SpecError> {
    let of = Heard { program: Arc::clone(program), core: core.clone() };
    HEARD.ask(of, |of| Recorded::of(&*of.program, &of.core, GROUP).map(Arc::new))
}

// Work of a program from a paper's table, in place of the nest's own counts (FlashAbacus, Table 2).
//
// The table has a program's input, its bytes per thousand instructions, and the share of loads and stores. The
// resulting instructions are spread over the pieces in proportion to the nest's own operations. The rest comes from the
// nest: the division of the other instructions between multipliers and general units, the excess of a loop's
// dependences over its units, and the share of accesses that miss.

/// Bytes of a MB in the table.
const MB: f64 = 1e6;

/// Unit of shares: millionths.
const WHOLE: u64 = 1_000_000;

/// Work of a program by a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vliw) struct Table {
    /// Instructions of an instance.
    instructions: u64,
    /// Share of loads and stores among them, in millionths.
    ldst: u64,
    /// Operations that the nest has in their place.
    operations: u64,
}

impl Table {
    /// # Errors
    /// A program without a table, or with impossible values.
    pub(in crate::vliw) fn of(kernel: &Kernel) -> Result<Table, SpecError> {
        let Some(Paper { ldst, bki, input, .. }) = kernel.paper().copied() else {
            let what = format!("`{}` has no table `paper`, so its work by table is unknown", kernel.name());
            return Err(SpecError::new("work", what)
                .help("set `work = \"nest\"` to count the program's own operations"));
        };
        let instructions = input * MB / bki * 1000.0;
        if !(0.0..=100.0).contains(&ldst) || !(1.0..=1e15).contains(&instructions) {
            let what =
                format!("{input} MB at {bki} B per thousand instructions, {ldst} % of them loads and stores");
            return Err(SpecError::new("work", format!("`paper` of `{}` has {what}", kernel.name()))
                .help("allowed are 1 to 10^15 instructions, 0 to 100 % loads and stores"));
        }
        let mut counts = Counts::default();
        (0..kernel.microblocks().len()).for_each(|at| counts += kernel.counts(&Piece::whole(at)));
        Ok(Table {
            instructions: instructions.round() as u64,
            ldst: (ldst * WHOLE as f64 / 100.0).round() as u64,
            operations: counts.operations().max(1),
        })
    }

    /// Instructions of a part of the program, by unit.
    pub(in crate::vliw) fn by_unit(&self, counts: &Counts, core: &CoreSpec) -> ByUnit {
        let instructions = share(self.instructions, counts.operations(), self.operations);
        let memory = share(instructions, self.ldst, WHOLE);
        let ByUnit { multiply, general, .. } = core.by_unit(counts);
        let multiply = share(instructions - memory, multiply, (multiply + general).max(1));
        ByUnit { memory, multiply, general: instructions - memory - multiply }
    }

    /// Cycles in which a core issues a part that takes `nest` cycles as its nest is written. `iterations` are those of
    /// its loops.
    fn cycles(
        &self,
        counts: &Counts,
        core: &CoreSpec,
        nest: u64,
        (loops, iterations): (&[LoopCycles], &[u64]),
    ) -> u64 {
        let times = iterations.iter().chain([&1]);
        let units: u64 = loops.iter().zip(times).map(|(one, times)| one.resources * times).sum();
        share(core.resources(&self.by_unit(counts, core)), nest, units.max(1))
    }

    /// Misses of a part whose nest misses `nest`: the same rate per access as in the nest.
    fn misses(&self, counts: &Counts, core: &CoreSpec, nest: Misses) -> Misses {
        let (accesses, of) = (self.by_unit(counts, core).memory, core.by_unit(counts).memory.max(1));
        let Misses { first, second, ahead, written } = nest;
        let [first, second, ahead, written] =
            [first, second, ahead, written].map(|misses| share(misses, accesses, of));
        Misses { first, second, ahead, written }
    }
}

/// Returns `whole * part / of`, rounded.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    ((u128::from(whole) * u128::from(part) + u128::from(of) / 2) / u128::from(of)) as u64
}

// Cache misses of a kernel, sampled once per process: runs of a study have the same kernels on the same caches.

/// Key of a sample.
#[derive(Clone, PartialEq)]
struct Sampled {
    kernel: Kernel,
    caches: (CacheSpec, CacheSpec, u32),
    accesses: u64,
    most: u64,
}

/// Samples by microblock.
type Samples = Arc<[Stalls]>;

/// Samples of a study's programs, split and not.
static SAMPLES: Known<Sampled, Samples> = Known::new(64);

/// Misses of each microblock, dealt out as at most `most` screens.
///
/// # Errors
/// A cache that cannot be built.
fn sampled(
    kernel: &Kernel,
    caches: (&CacheSpec, &CacheSpec, u32),
    accesses: u64,
    most: u64,
) -> Result<Samples, SpecError> {
    let of = Sampled {
        kernel: kernel.clone(),
        caches: (caches.0.clone(), caches.1.clone(), caches.2),
        accesses,
        most,
    };
    SAMPLES.ask(of, |_| {
        let mut all = Vec::new();
        for alike in kernel.microblocks().chunk_by(|one, next| one.text == next.text) {
            // Screens of one text have the same loops around the same accesses: the middle one represents all.
            let screens: Vec<Piece> = kernel.screens(all.len() + alike.len() / 2, most).collect();
            let sample = Stalls::sample(kernel, screens[screens.len() / 2], caches, accesses)?;
            all.extend(alike.iter().map(|_| sample.clone()));
        }
        Ok(all.into())
    })
}

// Programs that are loop nests: the costs of all pieces follow from one text.

/// Kernel, with the costs of its pieces.
struct Nested {
    kernel: Kernel,
    loops: Vec<Vec<LoopCycles>>,
    /// Stalls by microblock.
    stalls: Arc<[Stalls]>,
    /// Work by a table, if not counted from the kernel.
    table: Option<Table>,
}

impl Nested {
    /// Creates a nest whose microblocks are dealt out as at most `most` screens.
    ///
    /// # Errors
    /// A cache that cannot be built; work by a table without an entry for the kernel.
    fn new(kernel: Kernel, by: &Costing<'_>, most: u64) -> Result<Nested, SpecError> {
        let kernel = match by.sums {
            AcceleratorSums::memory => kernel,
            AcceleratorSums::registers => kernel.with_sums_in_registers(),
        };
        let stalls = sampled(&kernel, by.core.caches(), by.sample, most)?;
        let table = match by.work {
            AcceleratorWork::nest => None,
            AcceleratorWork::table => Some(Table::of(&kernel)?),
        };
        let loops = kernel.microblocks().iter().map(|microblock| by.core.loops(microblock)).collect();
        Ok(Nested { kernel, loops, stalls, table })
    }

    /// Cost of a piece; `begins` if caches are empty. `scratch` is overwritten.
    fn cost(&self, piece: &Piece, begins: bool, core: &CoreSpec, scratch: &mut Vec<u64>) -> Cost {
        let loops = &self.loops[piece.microblock];
        let cycles = core.cycles(&self.kernel, piece, loops, scratch);
        let misses = self.stalls[piece.microblock].of(scratch, begins);
        let Some(table) = self.table else { return Cost::of(cycles, misses, core) };
        let counts = self.kernel.counts(piece);
        let cycles = table.cycles(&counts, core, cycles, (loops, scratch));
        Cost::of(cycles, table.misses(&counts, core, misses), core)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vliw::testing::{self, core};
    use nest::executed::Wc;

    /// A repeated recording is the same object; equal words elsewhere in memory, and a different core, are recorded
    /// separately.
    #[test]
    fn a_program_in_memory_is_heard_once_on_a_core() {
        let words = || -> Arc<dyn Executed> { Arc::new(Wc::new(b"to be or not to be".to_vec())) };
        let (one, same) = (words(), words());
        let core = testing::core();
        let first = heard(&one, &core).expect("caches");
        assert!(Arc::ptr_eq(&first, &heard(&one, &core).expect("caches")));
        assert!(!Arc::ptr_eq(&first, &heard(&same, &core).expect("caches")));
        let mut other = core.clone();
        other.write_back += 1;
        assert!(!Arc::ptr_eq(&first, &heard(&one, &other).expect("caches")));
    }

    #[test]
    fn what_is_known_is_what_sampling_gives() {
        let (_, text) = nest::programs()[0];
        let kernel = |side: i64| {
            let sizes = ["m", "n"].map(|size| (size.to_owned(), side));
            Kernel::read(text, "atax", &sizes).expect("a program")
        };
        let spec = core();
        let of = |side, most| sampled(&kernel(side), spec.caches(), 4_096, most).expect("caches");
        let first = of(300, 4);
        assert!(Arc::ptr_eq(&first, &of(300, 4)));
        for other in [of(301, 4), of(300, 3)] {
            assert!(!Arc::ptr_eq(&first, &other));
        }
        let screen = kernel(300).screens(0, 4).count() / 2;
        let screen = kernel(300).screens(0, 4).nth(screen).expect("screens");
        let alone = Stalls::sample(&kernel(300), screen, spec.caches(), 4_096).expect("caches");
        assert_eq!(first[0], alone);
    }
}
