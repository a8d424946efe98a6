//! Soak test: small devices of all kinds under constant garbage collection, each with a shadow. A host reads, writes,
//! deallocates and flushes in ways that overlap as often as possible.

mod combination;
mod host;

pub use combination::{Combination, Fill, Map, Memory};
pub use host::{End, Host};

use crate::check::Check;
use crate::device::AheadCounters;
use crate::spec::{ErrorsSpec, ReclaimUnit, RetrySpec, SpecError, UpkeepSpec, WriterSpec};
use combination::{Row, levels};
use config::units::{Bytes, Duration, Share};
use engine::{Rng, Time};
use ftl::{
    buffer::{
        ahead::LookAheadPolicy,
        destage::{DestagePolicy, two_speed},
    },
    page_map::{
        alloc::Allocation,
        pages::{PageOrder, by_type, write_point},
    },
};
use serde::Serialize;

/// Outcome of one combination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Name made of its policies and sizes.
    pub name: String,
    /// Commands completed.
    pub operations: u64,
    /// Map units that were read and compared.
    pub units_checked: u64,
    /// Units that garbage collection has moved.
    pub moves: u64,
    /// Moved units, among these, that the host overtook.
    pub moves_dropped: u64,
    /// Units written in part that had to be merged again.
    pub merges_dropped: u64,
    /// Reads that found their page in a register.
    pub register_hits: u64,
    /// Reads that joined the sensing of another read.
    pub joined_reads: u64,
    /// Reads that were repeated, and those that no step could correct.
    pub retried_reads: [u64; 2],
    /// Units read ahead, and their outcomes.
    pub ahead: AheadCounters,
    /// Units evicted by a policy: evenly, in the foreground, in the background.
    pub evicted: [u64; 3],
    /// Pages that were skipped, in program units.
    pub skipped: u64,
    /// Digest of all completions with their times.
    pub digest: u64,
    /// Outcome of the run.
    pub end: End,
    /// Checks that failed.
    pub failed: Vec<Check>,
}

impl Outcome {
    /// Returns true if the combination passed.
    pub fn is_ok(&self) -> bool {
        self.end == End::Done && self.failed.is_empty()
    }
}

/// Outcomes of all combinations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SoakReport {
    /// One outcome per combination.
    pub outcomes: Vec<Outcome>,
}

impl SoakReport {
    /// Returns true if every combination passed.
    pub fn is_ok(&self) -> bool {
        self.outcomes.iter().all(Outcome::is_ok)
    }
    /// Commands completed, over all combinations.
    pub fn operations(&self) -> u64 {
        self.outcomes.iter().map(|o| o.operations).sum()
    }
    /// Map units compared, over all combinations.
    pub fn units_checked(&self) -> u64 {
        self.outcomes.iter().map(|o| o.units_checked).sum()
    }
}

/// Number that `cargo xtask soak` sets in the environment, or `otherwise`.
///
/// # Panics
/// Panics if the variable does not hold a number.
pub fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
}

/// Operations of a test: `short` in a test run, `SOAK_TIMES` as many in a soak.
pub fn operations(short: u64) -> u64 {
    short * setting("SOAK_TIMES", 1)
}

/// Runs `operations` commands on each of the pairwise combinations of all build choices.
///
/// # Panics
/// Panics if a combination cannot be built: a bug of this module, which its tests exclude.
pub fn soak(operations: u64, seed: u64) -> SoakReport {
    let run = |c: &Combination| run(c, operations, seed, true).expect("every combination can be built");
    SoakReport { outcomes: combinations(seed).iter().map(run).collect() }
}

/// Runs one combination, with or without a shadow.
///
/// # Errors
/// Returns an error if it cannot be built.
pub fn run(
    combination: &Combination,
    operations: u64,
    seed: u64,
    shadow: bool,
) -> Result<Outcome, SpecError> {
    let mut device = combination.build(seed)?;
    if shadow {
        device.attach_shadow();
    }
    let mut host = Host::new(device, seed, combination.depth);
    let end = host.drive(operations);
    let device = &host.device;
    let counters = device.ftl.counters;
    Ok(Outcome {
        name: combination.to_string(),
        operations: host.completed,
        units_checked: device.shadow().map_or(0, |s| s.units_checked),
        moves: counters.moves,
        moves_dropped: counters.moves_dropped,
        merges_dropped: counters.merges_dropped,
        register_hits: device.backend.counters.register_hits,
        joined_reads: device.backend.counters.joined_reads,
        retried_reads: [device.backend.counters.retried_reads, device.backend.counters.uncorrectable_reads],
        ahead: device.look_ahead_counters().unwrap_or_default(),
        evicted: device.stats.evictions.units,
        skipped: device.window_pages().map_or(0, |(counters, _)| counters.skipped),
        digest: host.digest(),
        end,
        failed: host.failed,
    })
}

// Combinations with features of only some devices.

impl Combination {
    /// Errors with every dependency: a third of the first reads fails, some pages stay uncorrectable.
    fn errors(&self) -> Option<ErrorsSpec> {
        self.errors.then(|| ErrorsSpec {
            fresh: 0.002,
            wear: 0.1,
            retention: 0.5,
            reads: 0.01,
            age: Some(0.002),
            types: Some(if self.one_shot { vec![0.7, 1.0, 2.0] } else { vec![1.0, 2.0] }),
            spread: Share::percent(50),
            retry: RetrySpec {
                correctable: 0.004,
                gain: 0.6,
                limit: 5,
                latency: Duration::new(Time::from_us(if self.suspend { 3 } else { 0 })),
            },
        })
    }

    /// Dedicated write cores of varying speed, with upkeep.
    fn writers(&self) -> Option<WriterSpec> {
        let ns = |ns| Duration::new(Time::from_ns(ns));
        self.nvme.then(|| WriterSpec {
            cores: 1,
            command: ns(1500),
            unit: ns(100),
            spread: Some(1.5),
            upkeep: Some(UpkeepSpec { write: ns(2000), batch: 3, spread: Some(0.5) }),
        })
    }

    /// Over-provisioning in percent, unless the minimum is wanted.
    fn spare(&self) -> u8 {
        let spare = if self.gap.is_some() { 60 } else { 50 };
        // Parity takes its share of the rest.
        self.parity.map_or(spare, |data| 100 - ((100 - u32::from(spare)) * data / (data + 1)) as u8)
    }

    /// Returns this combination with registers that gather writes, and what these require.
    pub fn with_registers(self, protected: bool) -> Combination {
        Combination {
            map_unit: self.page,
            reclaim: ReclaimUnit::block,
            one_shot: false,
            allocation: Allocation::striped,
            memory: if protected { Memory::ProtectedRegisters } else { Memory::Registers },
            look_ahead: LookAheadPolicy::none,
            ..self
        }
    }

    /// Returns this combination with a buffer of this write-back policy, and what that requires.
    pub fn with_destage(self, destage: DestagePolicy) -> Combination {
        let chooses_die = matches!(
            self.allocation,
            Allocation::round_robin | Allocation::least_queued(_) | Allocation::full(_)
        );
        Combination {
            reclaim: match self.reclaim {
                ReclaimUnit::superblock => ReclaimUnit::plane_set,
                other => other,
            },
            allocation: if chooses_die { self.allocation } else { Allocation::round_robin },
            memory: match self.memory {
                Memory::Protected | Memory::WriteBackAndReads => self.memory,
                _ => Memory::WriteBack,
            },
            destage,
            ..self
        }
    }

    /// Returns this combination with pages chosen by type, and what that requires.
    pub fn with_pages(self, pages: PageOrder) -> Combination {
        Combination {
            map_unit: self.map_unit.min(self.page),
            one_shot: false,
            placements: 1,
            gap: None,
            pages,
            ..self
        }
    }
}

// Small set of combinations that covers all pairs of choices.

/// Combinations that cover every possible pair of values, found greedily. In addition: eight of them with registers
/// that gather writes, each network twice; and twelve with a different write-back policy, half of which choose pages by
/// type.
pub fn combinations(seed: u64) -> Vec<Combination> {
    let levels = levels();
    let mut rng = Rng::stream(seed, "soak/combinations");
    let mut rows: Vec<Row> = Vec::new();
    while let Some(missing) = first_missing(&rows, &levels) {
        let draw = |rng: &mut Rng| -> Row {
            let mut row = levels.map(|n| rng.below(n as u64) as usize);
            missing.iter().for_each(|(field, value)| row[*field] = *value);
            row
        };
        let candidates: Vec<Row> =
            std::iter::repeat_with(|| draw(&mut rng)).filter(Combination::is_possible).take(50).collect();
        let gain = |row: &Row| pairs(row).filter(|pair| !is_covered(&rows, pair)).count();
        if let Some(best) = candidates.into_iter().max_by_key(gain) {
            rows.push(best);
        }
    }
    let mut all: Vec<Combination> = rows.iter().map(Combination::from_row).collect();
    for n in 0..8 {
        let (copy_back, suspend) = (n & 1 == 1, n & 2 == 2);
        all.push(Combination { copy_back, suspend, ..all[3 * n].clone() }.with_registers(n & 4 == 4));
    }
    for n in 0..12 {
        let policy = match n % 3 {
            0 => DestagePolicy::when_full,
            1 => two_speed(Time::ZERO),
            _ => two_speed(Time::from_us(700)),
        };
        let changed = all[2 * n].clone().with_destage(policy);
        all.push(if n < 6 { changed } else { changed.with_pages(pages(n)) });
    }
    all
}

/// Two-speed policy: little at once, to dies that are idle now or were on average.
fn two_speed(window: Time) -> DestagePolicy {
    DestagePolicy::two_speed(two_speed::Params {
        at_once: Bytes::from_kib(64),
        window: Duration::new(window),
        busy: Share::percent(30),
    })
}

/// Page order with few open blocks, and some that may lose pages.
fn pages(n: usize) -> PageOrder {
    let region = Bytes::from_kib(1 << 12);
    match n % 2 {
        0 => PageOrder::by_type(by_type::Params { open: 2, region }),
        _ => PageOrder::write_point(write_point::Params { region }),
    }
}

/// Pair of fields with a value each.
type Pair = [(usize, usize); 2];

fn pairs(row: &Row) -> impl Iterator<Item = Pair> + '_ {
    (0..row.len()).flat_map(move |a| (0..a).map(move |b| [(a, row[a]), (b, row[b])]))
}

fn is_covered(rows: &[Row], [(a, x), (b, y)]: &Pair) -> bool {
    rows.iter().any(|row| row[*a] == *x && row[*b] == *y)
}

fn first_missing(rows: &[Row], levels: &Row) -> Option<Pair> {
    let values =
        |a: usize, b: usize| (0..levels[a]).flat_map(move |x| (0..levels[b]).map(move |y| [(a, x), (b, y)]));
    (0..levels.len())
        .flat_map(|a| (0..a).flat_map(move |b| values(a, b)))
        .find(|pair| !is_covered(rows, pair) && is_possible_pair(pair))
}

/// Excludes the one impossible pair: see [`Combination::is_possible`].
fn is_possible_pair(pair: &Pair) -> bool {
    let largest = pair.contains(&(0, 3));
    let one_shot = pair.contains(&(3, 1));
    !(largest && one_shot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftl::page_map::gc::VictimPolicy;
    use nand::dies::sched::Scheduling;

    #[test]
    fn every_possible_pair_is_covered_by_few() {
        let all = combinations(1);
        assert!(all.len() < 80, "{} combinations", all.len());
        let covered = |f: &dyn Fn(&Combination) -> bool| all.iter().any(f);
        for victim in VictimPolicy::all_defaults() {
            for scheduler in Scheduling::all_defaults() {
                let both = |c: &Combination| {
                    c.victim.name() == victim.name() && c.scheduler.name() == scheduler.name()
                };
                assert!(covered(&both), "{} with {}", victim.name(), scheduler.name());
            }
        }
        assert!(covered(&|c| c.map_unit == 16384 && c.one_shot && c.page == 16384));
        assert!(!covered(&|c| c.map_unit > c.page && c.one_shot));
        all.iter().for_each(|c| drop(c.build(1).unwrap_or_else(|e| panic!("{c}: {}", e.what))));
    }
}
