//! What an accelerator knows of a kernel before it runs.

use super::GROUP;
use super::nested::Nested;
use crate::vliw::caches::Misses;
use crate::vliw::issue::Issue;
use crate::vliw::recorded::Recorded;
use crate::vliw::spec::{AcceleratorSpec, AcceleratorWork};
use config::SpecError;
use kernel::Time;
use nest::executed::{Area, Executed};
use nest::{Array, Kernel, Piece, Section};
use std::ops::RangeInclusive;

/// A kernel, with what its parts cost.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) arrays: Vec<Area>,
    /// Screens of each microblock.
    pub(super) screens: Vec<u32>,
    /// How many screens a microblock is dealt out as at most.
    most: u64,
    source: Source,
    /// Where each input array begins, in page groups: instances share it.
    pub(super) inputs: Vec<Option<u32>>,
}

/// How it is known what its parts do.
enum Source {
    /// From loops.
    Nested(Nested),
    /// From executing it.
    Recorded(Recorded),
}

/// A part of a program: a screen or a section of one.
#[expect(clippy::large_enum_variant, reason = "parts of a screen are one flat list; nearly all are of nests")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Of a nest.
    Nested(Piece),
    /// Pieces that were recorded, from and below.
    Recorded { from: usize, below: usize },
}

impl From<std::ops::Range<usize>> for Part {
    fn from(pieces: std::ops::Range<usize>) -> Part {
        Part::Recorded { from: pieces.start, below: pieces.end }
    }
}

/// What a piece takes of its core and of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Cycles in which it issues.
    pub(super) issue: u64,
    /// Cycles for which it waits for its caches.
    pub(super) stall: u64,
    /// Bytes between its caches and memory.
    pub(super) bytes: u64,
}

impl Cost {
    /// Of a part that issues for so many cycles, and whose caches miss so much.
    pub(super) fn of(issue: u64, misses: Misses, spec: &AcceleratorSpec) -> Cost {
        let stall = misses.first * u64::from(spec.l1.miss) + misses.second * u64::from(spec.l2.miss);
        Cost { issue, stall, bytes: (misses.second + misses.written) * spec.l2.line.get() }
    }
}

fn most(spec: &AcceleratorSpec, splits: bool) -> u64 {
    if splits { u64::from(spec.workers) } else { 1 }
}

impl Program {
    /// A kernel.
    ///
    /// # Errors
    /// A cache that cannot be built; work by a table that says nothing of the kernel.
    pub(super) fn new(
        kernel: Kernel,
        spec: &AcceleratorSpec,
        issue: &Issue,
        splits: bool,
    ) -> Result<Program, SpecError> {
        let most = most(spec, splits);
        let nested = Nested::new(kernel, spec, issue, most)?;
        let kernel = &nested.kernel;
        let area =
            |array: &Array| Area { name: array.name.clone(), bytes: array.bytes(), section: array.section };
        Ok(Program {
            name: kernel.name().to_owned(),
            arrays: kernel.arrays().iter().map(area).collect(),
            screens: (0..kernel.microblocks().len())
                .map(|microblock| kernel.screens(microblock, most).count() as u32)
                .collect(),
            most,
            inputs: vec![None; kernel.arrays().len()],
            source: Source::Nested(nested),
        })
    }

    /// A program that is executed on its data.
    ///
    /// # Errors
    /// A cache that cannot be built; work by a table; a piece that memory has no room for.
    pub(super) fn executed(
        program: &dyn Executed,
        spec: &AcceleratorSpec,
        issue: &Issue,
        splits: bool,
    ) -> Result<Program, SpecError> {
        if spec.work == AcceleratorWork::table {
            let what = format!("no table says how much work `{}` has", program.name());
            return Err(SpecError::new("work", what).help("`work = \"nest\"` takes what the program counts"));
        }
        let recorded = Recorded::of(program, issue, (&spec.l1, &spec.l2), GROUP)?;
        let slots = u64::from(spec.workers) * (u64::from(spec.ahead) + 1);
        let room = spec.memory.size.get() / slots / GROUP;
        if recorded.largest() as u64 > room {
            let (name, most) = (program.name(), recorded.largest());
            let what =
                format!("a piece of `{name}` touches {most} page groups, and a section has room for {room}");
            return Err(
                SpecError::new("memory.size", what).help("less data, fewer sections ahead, or more memory")
            );
        }
        let most = most(spec, splits);
        let arrays = program.arrays();
        Ok(Program {
            name: program.name().to_owned(),
            inputs: vec![None; arrays.len()],
            arrays,
            screens: (0..recorded.microblocks())
                .map(|microblock| recorded.screens(microblock, most).count() as u32)
                .collect(),
            most,
            source: Source::Recorded(recorded),
        })
    }

    /// A screen of a microblock.
    pub(super) fn screen(&self, microblock: u32, screen: u32) -> Part {
        let (microblock, screen) = (microblock as usize, screen as usize);
        let found = match &self.source {
            Source::Nested(of) => of.kernel.screens(microblock, self.most).nth(screen).map(Part::Nested),
            Source::Recorded(of) => of.screens(microblock, self.most).nth(screen).map(Part::from),
        };
        found.expect("a screen of the chain")
    }

    /// The sections of a screen, in order, whose page groups have at most so many bytes.
    pub(super) fn sections(&self, screen: Part, budget: u64, into: &mut Vec<Part>) {
        match (&self.source, screen) {
            (Source::Nested(of), Part::Nested(piece)) => {
                into.extend(of.kernel.sections(piece, budget, GROUP).map(Part::Nested));
            }
            (Source::Recorded(of), Part::Recorded { from, below }) => {
                let sections = of.sections(from..below, (budget / GROUP) as usize);
                into.extend(sections.into_iter().map(Part::from));
            }
            _ => unreachable!("a part of another program"),
        }
    }

    /// Calls with the page groups that a part touches, by array, and whether it reads and writes them; with some more than once.
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

    /// What a part costs; `begins` if caches are empty. `scratch` is overwritten.
    pub(super) fn cost(
        &self,
        part: &Part,
        begins: bool,
        spec: &AcceleratorSpec,
        issue: &Issue,
        scratch: &mut Vec<u64>,
    ) -> Cost {
        match (&self.source, part) {
            (Source::Nested(of), Part::Nested(piece)) => of.cost(piece, begins, spec, issue, scratch),
            (Source::Recorded(of), Part::Recorded { from, below }) => {
                let (cycles, misses) = of.cost(*from..*below);
                Cost::of(cycles, misses, spec)
            }
            _ => unreachable!("a part of another program"),
        }
    }

    /// Whether an array is shared by all instances.
    pub(super) fn is_shared(&self, array: usize) -> bool {
        self.arrays[array].section == Section::Input
    }
}

/// Cycles as time.
pub(super) fn time(cycles: u64, spec: &AcceleratorSpec) -> Time {
    let ps = u128::from(cycles) * 1_000_000_000_000 / u128::from(spec.clock.hz());
    Time::from_ps(ps as u64)
}
