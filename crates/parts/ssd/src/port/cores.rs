//! Controller cores: their work, its duration, and its variation.

use super::upkeep::Upkeep;
use engine::{Rng, Snapshot, Time, resource::Pool};

/// Cores of a controller.
#[derive(Clone, Debug)]
pub struct CoreParams {
    /// Number of cores that take commands.
    pub cores: u32,
    /// Additional core time of each map unit of a command.
    pub unit: Time,
    /// Variation of the times of commands, if any.
    pub varied: Option<Varied>,
    /// Dedicated write cores, if any.
    pub writers: Option<WriterParams>,
    /// Core time of each map unit moved by garbage collection.
    pub moved: Time,
}

/// Cores that only process writes.
#[derive(Clone, Debug)]
pub struct WriterParams {
    /// Number of cores.
    pub cores: u32,
    /// Core time of each write.
    pub command: Time,
    /// Additional core time of each map unit of a write.
    pub unit: Time,
    /// Variation of the times of writes, if any.
    pub varied: Option<Varied>,
    /// Work left after acknowledgement, if any.
    pub upkeep: Option<Upkeep>,
}

/// State of the cores.
pub(super) struct Cores {
    commands: Team,
    writers: Option<Writers>,
    moved: Time,
}

/// State of the dedicated write cores.
struct Writers {
    team: Team,
    command: Time,
    upkeep: Option<Upkeep>,
}

impl Writers {
    fn new(params: WriterParams) -> Writers {
        let WriterParams { cores, command, unit, varied, upkeep } = params;
        Writers { team: Team::new(cores, unit, varied), command, upkeep }
    }

    #[inline]
    fn work(&mut self, now: Time, units: u64) -> Time {
        let Some(upkeep) = &mut self.upkeep else { return self.team.work(now, self.command, units) };
        let cost = self.team.cost(self.command, units);
        let end = self.team.pool.grant_until(now, |start| start.max(upkeep.opens()) + cost);
        upkeep.takes(now, end);
        end
    }
}

/// Team of cores that share their work.
struct Team {
    pool: Pool,
    unit: Time,
    varied: Option<Varied>,
}

impl Team {
    fn new(cores: u32, unit: Time, varied: Option<Varied>) -> Team {
        Team { pool: Pool::new(cores.max(1) as usize), unit, varied }
    }

    /// Cost of a command with base time `cost` that touches `units` map units.
    #[inline]
    fn cost(&mut self, mut cost: Time, units: u64) -> Time {
        if self.unit > Time::ZERO {
            cost += self.unit.times(units);
        }
        if let Some(varied) = &mut self.varied {
            cost = varied.of(cost);
        }
        cost
    }

    /// Returns the end of a core's work.
    #[inline]
    fn work(&mut self, now: Time, cost: Time, units: u64) -> Time {
        let cost = self.cost(cost, units);
        grant(&mut self.pool, now, cost)
    }

    fn save(&self, out: &mut Vec<u8>) {
        let Team { pool, unit: _, varied } = self;
        pool.save(out);
        varied.iter().for_each(|varied| varied.state().save(out));
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.pool = Pool::load(input).filter(|loaded| loaded.len() == self.pool.len())?;
        if let Some(varied) = &mut self.varied {
            varied.restore(Rng::load(input)?);
        }
        Some(())
    }
}

impl Cores {
    pub(super) fn new(params: CoreParams) -> Cores {
        let CoreParams { cores, unit, varied, writers, moved } = params;
        Cores { commands: Team::new(cores, unit, varied), writers: writers.map(Writers::new), moved }
    }

    /// Returns the end of the cores' work on a command with base time `cost` that touches `units` map units.
    #[inline]
    pub(super) fn work(&mut self, now: Time, writes: bool, cost: Time, units: u64) -> Time {
        match &mut self.writers {
            Some(writers) if writes => writers.work(now, units),
            _ => self.commands.work(now, cost, units),
        }
    }

    /// Returns the time at which cores have found new places for `units` map units of garbage collection: write cores
    /// do this, if any.
    #[inline]
    pub(super) fn moves(&mut self, now: Time, units: u64) -> Time {
        let team = self.writers.as_mut().map_or(&mut self.commands, |writers| &mut writers.team);
        grant(&mut team.pool, now, self.moved.times(units))
    }

    fn teams(&self) -> impl Iterator<Item = &Team> {
        std::iter::once(&self.commands).chain(self.writers.iter().map(|writers| &writers.team))
    }

    fn upkeep(&self) -> Option<&Upkeep> {
        self.writers.as_ref()?.upkeep.as_ref()
    }

    /// Busy time of all cores up to `now`.
    pub(super) fn busy(&self, now: Time) -> Time {
        let busy = self.teams().fold(Time::ZERO, |busy, team| busy + team.pool.busy(now));
        self.upkeep().map_or(busy, |upkeep| busy + upkeep.busy(now))
    }

    pub(super) fn len(&self) -> usize {
        self.teams().map(|team| team.pool.len()).sum::<usize>() + usize::from(self.upkeep().is_some())
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        self.teams().for_each(|team| team.save(out));
        self.upkeep().into_iter().for_each(|upkeep| upkeep.save(out));
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.commands.load(input)?;
        let Some(Writers { team, command: _, upkeep }) = &mut self.writers else { return Some(()) };
        team.load(input)?;
        upkeep.as_mut().map_or(Some(()), |upkeep| upkeep.load(input))
    }
}

#[inline]
fn grant(pool: &mut Pool, now: Time, cost: Time) -> Time {
    if cost == Time::ZERO { now } else { pool.grant(now, cost) }
}

// Varying times: firmware takes other paths, waits for its memory, or has work of its own to do.
//
// Each time is drawn from a gamma distribution around its mean: never below zero, nearly bell-shaped for small spreads,
// mostly short and rarely very long for large ones. Sums of such times are gamma distributed too, so that a queue in
// front of one core has a closed form.

/// Random times around a mean.
#[derive(Clone, Debug)]
pub struct Varied {
    gamma: Gamma,
    rng: Rng,
}

impl Varied {
    /// Creates times whose standard deviation is `spread` times their mean; `None` if they are constant.
    pub fn new(spread: f64, rng: Rng) -> Option<Varied> {
        (spread > 0.0).then(|| Varied { gamma: Gamma::of_mean_one(spread), rng })
    }

    /// Draws a time with that mean.
    pub(super) fn of(&mut self, mean: Time) -> Time {
        Time::from_ps((mean.ps() as f64 * self.gamma.draw(&mut self.rng)) as u64)
    }

    pub(super) fn state(&self) -> &Rng {
        &self.rng
    }

    pub(super) fn restore(&mut self, rng: Rng) {
        self.rng = rng;
    }
}

/// Gamma distribution by Marsaglia and Tsang ("A simple method for generating gamma variables", ACM TOMS 26, 2000).
/// Logarithms and powers are those of `libm`: the platform's own differ in their last bit.
#[derive(Clone, Copy, Debug)]
struct Gamma {
    /// Parameter `d` of the paper, of the shape or, where that is below one, of the shape plus one.
    d: f64,
    /// Parameter `c` of the paper.
    c: f64,
    /// Inverse of the shape, where that is below one.
    boost: Option<f64>,
    scale: f64,
}

impl Gamma {
    fn of_mean_one(spread: f64) -> Gamma {
        let scale = spread * spread;
        let shape = 1.0 / scale;
        let (shape, boost) = if shape < 1.0 { (shape + 1.0, Some(scale)) } else { (shape, None) };
        let d = shape - 1.0 / 3.0;
        Gamma { d, c: 1.0 / libm::sqrt(9.0 * d), boost, scale }
    }

    fn draw(&self, rng: &mut Rng) -> f64 {
        let boost = self.boost.map_or(1.0, |power| libm::pow(open_unit(rng), power));
        loop {
            let x = normal(rng);
            let root = 1.0 + self.c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            if libm::log(open_unit(rng)) < 0.5 * x * x + self.d * (1.0 - v + libm::log(v)) {
                return self.scale * self.d * v * boost;
            }
        }
    }
}

/// Draws a number above zero, up to and including one.
fn open_unit(rng: &mut Rng) -> f64 {
    1.0 - rng.unit()
}

/// Draws a standard normal number (Box and Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    libm::sqrt(-2.0 * libm::log(open_unit(rng))) * libm::cos(std::f64::consts::TAU * rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(writers: Option<WriterParams>, moved: u64) -> Cores {
        Cores::new(CoreParams {
            cores: 2,
            unit: Time::from_us(1),
            varied: None,
            writers,
            moved: Time::from_us(moved),
        })
    }

    #[test]
    fn writes_take_the_cores_of_reads_unless_they_have_their_own() {
        let us = Time::from_us;
        let mut shared = cores(None, 0);
        let ends = [true, true, false].map(|writes| shared.work(Time::ZERO, writes, us(4), 2));
        assert_eq!(ends, [us(6), us(6), us(12)]);
        let own = WriterParams { cores: 1, command: us(10), unit: us(3), varied: None, upkeep: None };
        let mut apart = cores(Some(own), 0);
        let ends = [true, true, false].map(|writes| apart.work(Time::ZERO, writes, us(4), 2));
        assert_eq!(ends, [us(16), us(32), us(6)]);
        assert_eq!((apart.len(), apart.busy(us(32))), (3, us(38)));
    }

    #[test]
    fn moving_takes_the_cores_of_writes() {
        let us = Time::from_us;
        assert_eq!(cores(None, 0).moves(us(5), 4), us(5));
        let mut shared = cores(None, 3);
        assert_eq!(shared.moves(Time::ZERO, 4), us(12));
        let mut apart = cores(
            Some(WriterParams { cores: 1, command: us(10), unit: Time::ZERO, varied: None, upkeep: None }),
            3,
        );
        assert_eq!(apart.moves(Time::ZERO, 4), us(12));
        assert_eq!(apart.work(Time::ZERO, true, Time::ZERO, 1), us(22));
        assert_eq!(apart.work(Time::ZERO, false, us(4), 0), us(4));
    }

    #[test]
    fn they_are_loaded_as_saved() {
        let varied = || Varied::new(2.0, Rng::stream(1, "test"));
        let own = || {
            Some(WriterParams {
                cores: 1,
                command: Time::from_us(10),
                unit: Time::ZERO,
                varied: varied(),
                upkeep: Some(Upkeep::new(Time::from_us(12), 2, varied())),
            })
        };
        let mut saved = cores(own(), 1);
        saved.work(Time::ZERO, true, Time::ZERO, 0);
        saved.work(Time::ZERO, false, Time::from_us(7), 0);
        let mut bytes = Vec::new();
        saved.save(&mut bytes);
        let mut loaded = cores(own(), 1);
        assert_eq!(loaded.load(&mut bytes.as_slice()), Some(()));
        for (writes, cost) in [(true, 1), (false, 2), (false, 3)] {
            let next = |cores: &mut Cores| cores.work(Time::ZERO, writes, Time::from_us(cost), 1);
            assert_eq!(next(&mut loaded), next(&mut saved));
        }
        assert_eq!(cores(None, 0).load(&mut [].as_slice()), None);
    }

    /// Mean and percentiles of sums that together have shapes 1, 4 and 16, of draws of larger shapes and of much
    /// smaller ones, against those of the gamma distribution.
    #[test]
    fn sums_have_the_percentiles_of_the_sum() {
        // Quantiles 0.5 and 0.99 of the gamma distributions of shape 1, 4 and 16, from chi-squared tables: half of those of 2, 8
        // and 32 degrees of freedom.
        let tables = [
            (1.0, 1.386 / 2.0, 9.210 / 2.0),
            (4.0, 7.344 / 2.0, 20.090 / 2.0),
            (16.0, 31.336 / 2.0, 53.486 / 2.0),
        ];
        for (spread, together) in
            [(0.5, 1), (0.25, 1), (1.0, 1), (0.5, 4), (2.0, 4), (2.0, 64), (5.0, 25), (5.0, 400)]
        {
            let shape = f64::from(together) / (spread * spread);
            let (_, median, tail) =
                tables.into_iter().find(|(of, ..)| (of - shape).abs() < 1e-9).expect("it is in the tables");
            let mut varied = Varied::new(spread, Rng::stream(3, "test")).expect("it is spread");
            let mean = Time::from_us(1);
            let mut sums: Vec<f64> = (0..20_000)
                .map(|_| {
                    (0..together).map(|_| varied.of(mean).ps() as f64 / 1e6).sum::<f64>() / (spread * spread)
                })
                .collect();
            sums.sort_by(f64::total_cmp);
            let average = sums.iter().sum::<f64>() / sums.len() as f64;
            // Four standard errors of a mean of 20,000; those of the quantiles follow from the density there.
            assert!(
                (average - shape).abs() < 4.0 * shape.sqrt() / 141.0,
                "{spread} {together}: {average} {shape}"
            );
            let error = |sample: f64, exact: f64| (sample / exact - 1.0).abs();
            assert!(error(sums[10_000], median) < 0.04, "{spread} {together}: {} {median}", sums[10_000]);
            assert!(error(sums[19_800], tail) < 0.04, "{spread} {together}: {} {tail}", sums[19_800]);
        }
    }

    #[test]
    fn no_spread_is_no_draw() {
        assert!(Varied::new(0.0, Rng::stream(1, "test")).is_none());
    }
}
