//! What is left to do when a write has been acknowledged: its place, its entry in the map, and whatever else firmware puts off.
//!
//! A core of its own does it, a batch of writes at a time. One batch is worked on while the next one fills; when that is full too,
//! writes wait until the work ends. So a drive takes writes fast as long as they come more slowly than that core works, and else
//! alternates: a batch at full speed, and a stop. Stops differ in length where batches differ, as they do where collection works
//! along with the host.

use super::varied::Varied;
use kernel::{Rng, Snapshot, Time, resource::Pool};

/// A core that works on writes which have been acknowledged.
#[derive(Clone, Debug)]
pub struct Upkeep {
    core: Pool,
    /// Core time a write.
    write: Time,
    /// Writes that it works on at once.
    batch: u32,
    /// How the times of batches differ, if they do.
    varied: Option<Varied>,
    /// Writes in the batch that fills.
    filled: u32,
    /// When that batch begins to take writes.
    opens: Time,
    /// When the work on the batch before it ends.
    ends: Time,
}

impl Upkeep {
    /// An idle one, which needs so much for each write of a batch.
    ///
    /// # Panics
    /// If a batch has no writes.
    pub fn new(write: Time, batch: u32, varied: Option<Varied>) -> Upkeep {
        assert!(batch > 0, "a batch has writes");
        Upkeep { core: Pool::new(1), write, batch, varied, filled: 0, opens: Time::ZERO, ends: Time::ZERO }
    }

    /// When a write that comes now may be taken.
    #[inline]
    pub(super) fn opens(&self, now: Time) -> Time {
        now.max(self.opens)
    }

    /// A write is acknowledged then.
    #[inline]
    pub(super) fn takes(&mut self, end: Time) {
        self.filled += 1;
        if self.filled == self.batch {
            self.filled = 0;
            self.opens = self.ends;
            let mean = self.write.times(self.batch.into());
            let time = self.varied.as_mut().map_or(mean, |varied| varied.of(mean));
            self.ends = self.core.grant(end, time);
        }
    }

    /// Time that the core has been busy up to `now`.
    pub(super) fn busy(&self, now: Time) -> Time {
        self.core.busy(now)
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Upkeep { core, write: _, batch: _, varied, filled, opens, ends } = self;
        core.save(out);
        varied.iter().for_each(|varied| varied.state().save(out));
        (filled.save(out), opens.save(out), ends.save(out));
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.core = Pool::load(input).filter(|core| core.len() == 1)?;
        if let Some(varied) = &mut self.varied {
            varied.restore(Rng::load(input)?);
        }
        self.filled = u32::load(input).filter(|filled| *filled < self.batch)?;
        (self.opens, self.ends) = (Time::load(input)?, Time::load(input)?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    /// Writes that come as soon as they may: a batch at their own pace, and a stop until the batch before has been worked on.
    #[test]
    fn a_batch_at_full_speed_and_a_stop() {
        let mut upkeep = Upkeep::new(US(10), 4, None);
        let mut now = Time::ZERO;
        let mut ends = Vec::new();
        for _ in 0..20 {
            now = upkeep.opens(now) + US(2);
            upkeep.takes(now);
            ends.push(now);
        }
        // Batches end at 8 and 16, their work at 48 and 88; the third begins at 48, the fourth at 88, the fifth at 128.
        let expected = [2, 4, 6, 8, 10, 12, 14, 16, 50, 52, 54, 56, 90, 92, 94, 96, 130, 132, 134, 136];
        assert_eq!(ends, expected.map(US));
        assert_eq!(upkeep.busy(US(100)), US(92));
    }

    #[test]
    fn writes_that_come_more_slowly_never_wait() {
        let mut upkeep = Upkeep::new(US(10), 4, None);
        for n in 0..100 {
            let now = US(11 * n);
            assert_eq!(upkeep.opens(now), now);
            upkeep.takes(now + US(2));
        }
    }
}
