//! Steady state under uniform random writes, drawn from theory.

use super::session::{Halt, Session};
use super::{Fill, unit_of_group, units_of_group};
use config::Diagnostic;
use engine::Rng;
use ftl::page_map::assume::Drawn;
use ftl::page_map::functional::Placement;
use ftl::page_map::gc::VictimPolicy;
use nand::geometry::Geometry;
use proto::Lpn;
use requests::synth::Permutation;
use std::collections::BTreeMap;
use theory::wa;

/// Largest mean share of padding in a reclaim unit: the theory ignores padding.
const MOST_PADDING: f64 = 0.01;

/// Victim policies with a known stationary histogram of valid counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Model {
    Greedy,
    /// Best of this many random candidates.
    Choices(u32),
    Oldest,
}

impl Model {
    fn of(victim: &VictimPolicy) -> Result<Model, Diagnostic> {
        match victim {
            VictimPolicy::greedy => Ok(Model::Greedy),
            VictimPolicy::d_choices(params) => Ok(Model::Choices(params.d.max(1))),
            VictimPolicy::random => Ok(Model::Choices(1)),
            VictimPolicy::fifo => Ok(Model::Oldest),
            other => {
                let what = format!("no known steady state for the victim policy `{}`", other.name());
                Err(Diagnostic::new(what)
                    .allowed(other.name(), ["greedy", "d_choices", "random", "fifo"])
                    .help("use `steady`, which simulates it"))
            }
        }
    }

    /// Write amplification with `closed` reclaim units of `per_ru` map units, `valid` of them valid.
    fn amplification(self, closed: u32, per_ru: u32, valid: u64) -> f64 {
        let spare = spare(closed, per_ru, valid);
        match self {
            Model::Greedy => wa::greedy(per_ru, spare),
            Model::Choices(d) => wa::d_choices(per_ru, spare, d),
            Model::Oldest => wa::fifo(spare),
        }
    }

    /// Valid counts of closed reclaim units, the one closed first in front.
    fn counts(self, histograms: &mut Histograms, closed: u32, valid: u64, rng: &mut Rng) -> Vec<u32> {
        let per_ru = histograms.per_ru;
        let mut counts = match self {
            Model::Oldest => by_age(closed, per_ru, valid, rng),
            _ => {
                let mut counts = spread(histograms.of(self, closed, valid), closed, rng);
                rng.shuffle(&mut counts);
                counts
            }
        };
        settle(&mut counts, per_ru, valid, rng);
        counts
    }
}

fn spare(closed: u32, per_ru: u32, valid: u64) -> wa::Spare {
    wa::Spare::of_units(u64::from(closed) * u64::from(per_ru), valid)
}

/// Cumulative histograms, by number of closed reclaim units: groups with equally many share one.
struct Histograms {
    per_ru: u32,
    known: BTreeMap<u32, Vec<f64>>,
}

impl Histograms {
    fn of(&mut self, model: Model, closed: u32, valid: u64) -> &[f64] {
        let per_ru = self.per_ru;
        self.known.entry(closed).or_insert_with(|| {
            let spare = spare(closed, per_ru, valid);
            let shares = match model {
                Model::Choices(d) => wa::d_choices_histogram(per_ru, spare, d),
                Model::Greedy | Model::Oldest => wa::greedy_histogram(per_ru, spare),
            };
            shares
                .into_iter()
                .scan(0.0, |sum, share| {
                    *sum += share;
                    Some(*sum)
                })
                .collect()
        })
    }
}

/// Quantiles of a cumulative histogram at even distances from a random start. Their mean is nearer to the histogram's
/// mean than that of independent draws, as it is among the reclaim units of one group.
fn spread(cumulative: &[f64], closed: u32, rng: &mut Rng) -> Vec<u32> {
    let start = rng.unit();
    let mut level = 0;
    (0..closed)
        .map(|n| {
            let quantile = (f64::from(n) + start) / f64::from(closed);
            while level + 1 < cumulative.len() && cumulative[level] < quantile {
                level += 1;
            }
            level as u32
        })
        .collect()
}

/// Valid counts under victim selection by age: a unit has survived with probability `exp(-life * age)`, with `age` from
/// 0 at the unit closed last to 1 at the next victim. The mean over all ages is the valid share.
fn by_age(closed: u32, per_ru: u32, valid: u64, rng: &mut Rng) -> Vec<u32> {
    let share = valid as f64 / (f64::from(closed) * f64::from(per_ru));
    let (mut low, mut high) = (0.0, 1.0 / share + 1.0);
    for _ in 0..100 {
        let life = (low + high) / 2.0;
        if -libm::expm1(-life) / life > share { low = life } else { high = life }
    }
    (0..closed)
        .map(|n| {
            let age = (f64::from(closed - n) - 0.5) / f64::from(closed);
            let survival = libm::exp(-low * age);
            (0..per_ru).map(|_| u32::from(rng.unit() < survival)).sum()
        })
        .collect()
}

/// Adjusts counts by one, at random, until they add up.
fn settle(counts: &mut [u32], per_ru: u32, valid: u64, rng: &mut Rng) {
    let mut sum: u64 = counts.iter().map(|c| u64::from(*c)).sum();
    // Greedy garbage collection leaves no count below a floor.
    let even = valid / counts.len().max(1) as u64;
    let floor = counts.iter().min().map_or(0, |least| u64::from(*least).min(even)) as u32;
    while sum != valid {
        let count = &mut counts[rng.below(counts.len() as u64) as usize];
        if sum < valid && *count < per_ru {
            *count += 1;
            sum += 1;
        } else if sum > valid && *count > floor {
            *count -= 1;
            sum -= 1;
        }
    }
}

pub(super) fn apply(fill: &Fill, session: &mut Session<'_>) -> Result<(), Halt> {
    let units = session.share(fill.share)?;
    let model = Model::of(&session.flash.ftl.gc.victim)?;
    refuse_padding(&session.ftl.geo)?;
    session.require_spare()?;
    let geo = session.ftl.geo.clone();
    let mut histograms = Histograms { per_ru: geo.units_per_ru, known: BTreeMap::new() };
    let striped = session.writer.placement() == Placement::Striped;
    let anywhere = Permutation::new(units, session.key("units"));
    let mut amplification = 0.0;
    let planes = session.planes_in_step();
    let mut in_step = None;
    let mut before = 0;
    session.work = Some(units);
    for group in 0..geo.groups {
        let count =
            if striped { units_of_group(&geo, group, units) } else { dealt(units, group, geo.groups) };
        if count == 0 {
            continue;
        }
        session.worked = before;
        session.pause()?;
        let usable = session.ftl.usable(group);
        in_step = in_step.filter(|_| group % planes > 0);
        let drawn = draw_group(model, &mut histograms, (count, usable), in_step, session);
        in_step = Some(drawn.host);
        let closed = drawn.closed.len() as u32;
        let in_closed: u64 = drawn.closed.iter().map(|c| u64::from(*c)).sum();
        if in_closed > 0 {
            let of_group = model.amplification(closed, geo.units_per_ru, in_closed);
            amplification += of_group * count as f64 / units as f64;
        }
        let order = Permutation::new(count, session.key(&format!("units/{group}")));
        let mut lpns = (0..count).map(|n| {
            if !striped {
                return Lpn(anywhere.at(before + n));
            }
            Lpn(unit_of_group(&geo, group, order.at(n)))
        });
        session.ftl.assume_drawn(group, &drawn, &mut lpns, &mut session.rng);
        before += count;
    }
    session.declared();
    session.amplification = Some(amplification);
    Ok(())
}

/// Draws one cycle of garbage collection: it stops at `stop` free units and starts again at `start`; between, the host
/// opens one unit after another. Both frontiers are anywhere in their reclaim unit, except for the host's where it is
/// `in_step` with another.
fn draw_group(
    model: Model,
    histograms: &mut Histograms,
    (count, usable): (u64, u32),
    in_step: Option<u32>,
    session: &mut Session<'_>,
) -> Drawn {
    let (geo, limits) = (&session.ftl.geo, session.ftl.thresholds);
    let rng = &mut session.rng;
    let programs = u64::from(geo.programs_per_ru);
    let mut host = in_step.unwrap_or_else(|| rng.below(programs) as u32);
    let mut moved = rng.below(programs) as u32;
    let open = |host: u32, moved: u32| u64::from(host + moved) * u64::from(geo.units_per_program);
    if open(host, moved) > count / 2 {
        (host, moved) = (0, 0);
    }
    let free = limits.start + 1 + rng.below(u64::from(limits.stop - limits.start)) as u32;
    let taken = u32::from(host > 0) + u32::from(moved > 0);
    let valid = count - open(host, moved);
    // With too little over-provisioning, garbage collection cannot reach `stop`.
    let least = (valid / u64::from(geo.units_per_ru)) as u32 + 1;
    let closed = usable.saturating_sub(taken + free).max(least);
    Drawn { closed: model.counts(histograms, closed, valid, rng), host, moved }
}

/// Number of units of a group when groups take turns.
fn dealt(units: u64, group: u32, groups: u32) -> u64 {
    let upto = |group: u32| units * u64::from(group) / u64::from(groups);
    upto(group + 1) - upto(group)
}

/// The theory moves single units; the device moves program units, and pads the last one of a victim.
fn refuse_padding(geo: &Geometry) -> Result<(), Diagnostic> {
    let padding = f64::from(geo.units_per_program - 1) / 2.0 / f64::from(geo.units_per_ru);
    if padding <= MOST_PADDING {
        return Ok(());
    }
    let what = format!(
        "program units of {} map units pad ({} - 1) / 2 of the {} units of a victim on average, {:.1} %, which the theory ignores; at most {:.0} % is allowed",
        geo.units_per_program,
        geo.units_per_program,
        geo.units_per_ru,
        100.0 * padding,
        100.0 * MOST_PADDING,
    );
    Err(Diagnostic::new(what).help("use `steady`, which simulates the state"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_have_the_shape_of_the_theory() {
        let (closed, per_ru, valid) = (500, 128, 500 * 128 * 84 / 100);
        for model in [Model::Greedy, Model::Choices(10), Model::Choices(1), Model::Oldest] {
            let mut rng = Rng::stream(3, "test");
            let mut histograms = Histograms { per_ru, known: BTreeMap::new() };
            let mut seen = vec![0.0; per_ru as usize + 1];
            let rounds = 40;
            for _ in 0..rounds {
                let counts = model.counts(&mut histograms, closed, valid, &mut rng);
                assert_eq!(counts.iter().map(|c| u64::from(*c)).sum::<u64>(), valid);
                counts.iter().for_each(|c| seen[*c as usize] += 1.0 / f64::from(rounds * closed));
            }
            let spare = spare(closed, per_ru, valid);
            let expected = match model {
                Model::Greedy => wa::greedy_histogram(per_ru, spare),
                Model::Choices(d) => wa::d_choices_histogram(per_ru, spare, d),
                Model::Oldest => wa::fifo_histogram(per_ru, spare),
            };
            // Kolmogorov distance of 20 000 counts, which are less random than independent ones: below the 0.999
            // quantile of independent ones, 1.95 / sqrt(20 000).
            let (mut a, mut b, mut distance) = (0.0, 0.0, 0.0f64);
            for (x, y) in seen.iter().zip(&expected) {
                (a, b) = (a + x, b + y);
                distance = distance.max((a - b).abs());
            }
            assert!(distance < 0.0138, "{model:?}: {distance}");
        }
    }

    #[test]
    fn oldest_units_come_first_and_have_lost_most() {
        let mut rng = Rng::stream(3, "test");
        let counts = by_age(1000, 128, 1000 * 100, &mut rng);
        let mean = |range: std::ops::Range<usize>| counts[range].iter().sum::<u32>() as f64 / 100.0;
        assert!(mean(0..100) < mean(450..550) && mean(450..550) < mean(900..1000));
    }
}
