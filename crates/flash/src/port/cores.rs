//! A controller's cores: what they work on, and how long.

use kernel::{Snapshot, Time, resource::Pool};

/// A controller's cores.
#[derive(Clone, Debug)]
pub struct CoreParams {
    /// Those that take commands.
    pub cores: u32,
    /// Core time a map unit of a command, on top of that of the command.
    pub unit: Time,
    /// Those that take writes alone, if there are some.
    pub writers: Option<WriterParams>,
    /// Core time that collection needs for each map unit that it moves.
    pub moved: Time,
}

/// Cores that take writes alone.
#[derive(Clone, Debug)]
pub struct WriterParams {
    /// How many.
    pub cores: u32,
    /// Core time a write.
    pub command: Time,
    /// Core time a map unit of a write, on top.
    pub unit: Time,
}

/// Cores at work.
pub(super) struct Cores {
    pool: Pool,
    unit: Time,
    writers: Option<(Pool, Time, Time)>,
    moved: Time,
}

impl Cores {
    pub(super) fn new(params: CoreParams) -> Cores {
        let pool = |cores: u32| Pool::new(cores.max(1) as usize);
        Cores {
            pool: pool(params.cores),
            unit: params.unit,
            writers: params.writers.map(|w| (pool(w.cores), w.command, w.unit)),
            moved: params.moved,
        }
    }

    /// When they have worked on a command that costs this by itself and touches so many map units.
    #[inline]
    pub(super) fn work(&mut self, now: Time, writes: bool, mut cost: Time, units: u64) -> Time {
        if writes && let Some((pool, command, unit)) = &mut self.writers {
            return grant(pool, now, *command + unit.times(units));
        }
        if self.unit > Time::ZERO {
            cost += self.unit.times(units);
        }
        grant(&mut self.pool, now, cost)
    }

    /// When they have found a new place for so many map units of collection: writers do it, if there are some.
    #[inline]
    pub(super) fn moves(&mut self, now: Time, units: u64) -> Time {
        let pool = self.writers.as_mut().map_or(&mut self.pool, |(pool, ..)| pool);
        grant(pool, now, self.moved.times(units))
    }

    /// Time that they have been busy up to `now`, all together.
    pub(super) fn busy(&self, now: Time) -> Time {
        self.writers.iter().fold(self.pool.busy(now), |busy, (pool, ..)| busy + pool.busy(now))
    }

    pub(super) fn len(&self) -> usize {
        self.pool.len() + self.writers.as_ref().map_or(0, |(pool, ..)| pool.len())
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Cores { pool, unit: _, writers, moved: _ } = self;
        pool.save(out);
        writers.iter().for_each(|(pool, ..)| pool.save(out));
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let load = |pool: &mut Pool, input: &mut &[u8]| {
            *pool = Pool::load(input).filter(|loaded| loaded.len() == pool.len())?;
            Some(())
        };
        load(&mut self.pool, input)?;
        self.writers.as_mut().map_or(Some(()), |(pool, ..)| load(pool, input))
    }
}

#[inline]
fn grant(pool: &mut Pool, now: Time, cost: Time) -> Time {
    if cost == Time::ZERO { now } else { pool.grant(now, cost) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(writers: Option<WriterParams>, moved: u64) -> Cores {
        Cores::new(CoreParams { cores: 2, unit: Time::from_us(1), writers, moved: Time::from_us(moved) })
    }

    #[test]
    fn writes_take_the_cores_of_reads_unless_they_have_their_own() {
        let us = Time::from_us;
        let mut shared = cores(None, 0);
        let ends = [true, true, false].map(|writes| shared.work(Time::ZERO, writes, us(4), 2));
        assert_eq!(ends, [us(6), us(6), us(12)]);
        let own = WriterParams { cores: 1, command: us(10), unit: us(3) };
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
        let mut apart = cores(Some(WriterParams { cores: 1, command: us(10), unit: Time::ZERO }), 3);
        assert_eq!(apart.moves(Time::ZERO, 4), us(12));
        assert_eq!(apart.work(Time::ZERO, true, Time::ZERO, 1), us(22));
        assert_eq!(apart.work(Time::ZERO, false, us(4), 0), us(4));
    }

    #[test]
    fn they_are_loaded_as_saved() {
        let own = || Some(WriterParams { cores: 1, command: Time::from_us(10), unit: Time::ZERO });
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
}
