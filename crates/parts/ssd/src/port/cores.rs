//! A controller's cores: what they work on, and how long.

use super::upkeep::Upkeep;
use super::varied::Varied;
use engine::{Rng, Snapshot, Time, resource::Pool};

/// A controller's cores.
#[derive(Clone, Debug)]
pub struct CoreParams {
    /// Those that take commands.
    pub cores: u32,
    /// Core time a map unit of a command, on top of that of the command.
    pub unit: Time,
    /// How the times of commands differ, if they do.
    pub varied: Option<Varied>,
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
    /// How the times of writes differ, if they do.
    pub varied: Option<Varied>,
    /// What is left to do when they have been acknowledged, if anything is.
    pub upkeep: Option<Upkeep>,
}

/// Cores at work.
pub(super) struct Cores {
    commands: Team,
    writers: Option<Writers>,
    moved: Time,
}

/// Cores that take writes alone.
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

/// Cores that share their work.
struct Team {
    pool: Pool,
    unit: Time,
    varied: Option<Varied>,
}

impl Team {
    fn new(cores: u32, unit: Time, varied: Option<Varied>) -> Team {
        Team { pool: Pool::new(cores.max(1) as usize), unit, varied }
    }

    /// What a command costs that costs this by itself and touches so many map units.
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

    /// When one has worked on it.
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

    /// When they have worked on a command that costs this by itself and touches so many map units.
    #[inline]
    pub(super) fn work(&mut self, now: Time, writes: bool, cost: Time, units: u64) -> Time {
        match &mut self.writers {
            Some(writers) if writes => writers.work(now, units),
            _ => self.commands.work(now, cost, units),
        }
    }

    /// When they have found a new place for so many map units of collection: writers do it, if there are some.
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

    /// Time that they have been busy up to `now`, all together.
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
}
