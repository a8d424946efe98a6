//! Work left after a write has been acknowledged: its place, its map entry, and other deferred work of the firmware.
//!
//! A dedicated core does it, one batch of writes at a time. One batch is processed while the next one fills; when that
//! is full too, writes wait until the work ends. So a drive takes writes fast as long as they arrive more slowly than
//! that core works. Otherwise it alternates between a batch at full speed and a stop. Stops differ in length where
//! batches differ, as they do when garbage collection runs along with the host.

use super::cores::Varied;
use engine::{Rng, Snapshot, Time};
use std::collections::VecDeque;

/// Core that works on acknowledged writes.
#[derive(Clone, Debug)]
pub struct Upkeep {
    /// Core time of each write.
    write: Time,
    /// Writes per batch.
    batch: u32,
    /// Variation of the times of batches, if any.
    varied: Option<Varied>,
    /// Writes in the filling batch.
    filled: u32,
    /// Time at which that batch begins to take writes: the end of the work on the last batch but one.
    opens: Time,
    /// Batches whose work had not ended when the last of them was scheduled: begin and end, oldest first.
    works: VecDeque<(Time, Time)>,
    /// End of the work on the last batch.
    ends: Time,
    /// Work that had ended when the last batch was scheduled, and has been unlisted.
    worked: Time,
}

impl Upkeep {
    /// Creates an idle core that needs `write` for each write of a batch.
    ///
    /// # Panics
    /// Panics if a batch has no writes.
    pub fn new(write: Time, batch: u32, varied: Option<Varied>) -> Upkeep {
        assert!(batch > 0, "a batch has writes");
        let never = Time::ZERO;
        Upkeep {
            write,
            batch,
            varied,
            filled: 0,
            opens: never,
            works: VecDeque::new(),
            ends: never,
            worked: never,
        }
    }

    /// Time at which the next write may be taken.
    #[inline]
    pub(super) fn opens(&self) -> Time {
        self.opens
    }

    /// Takes a write that arrives `now` and will be acknowledged at `end`.
    #[inline]
    pub(super) fn takes(&mut self, now: Time, end: Time) {
        self.filled += 1;
        if self.filled == self.batch {
            self.filled = 0;
            self.begins(now, end);
        }
    }

    /// Schedules a batch that will be full at `full`.
    fn begins(&mut self, now: Time, full: Time) {
        while let Some(&(start, end)) = self.works.front().filter(|(_, end)| *end <= now) {
            self.worked += end - start;
            self.works.pop_front();
        }
        let mean = self.write.times(self.batch.into());
        let time = self.varied.as_mut().map_or(mean, |varied| varied.of(mean));
        let start = self.ends.max(full);
        self.opens = self.ends;
        self.ends = start + time;
        self.works.push_back((start, self.ends));
    }

    /// Busy time of the core up to `now`.
    pub(super) fn busy(&self, now: Time) -> Time {
        let works = self.works.iter().map(|(start, end)| (*end).min(now).since(*start));
        works.fold(self.worked, |sum, time| sum + time)
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Upkeep { write: _, batch: _, varied, filled, opens, works, ends, worked } = self;
        varied.iter().for_each(|varied| varied.state().save(out));
        filled.save(out);
        works.save(out);
        [opens, ends, worked].iter().for_each(|time| time.save(out));
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        if let Some(varied) = &mut self.varied {
            varied.restore(Rng::load(input)?);
        }
        self.filled = u32::load(input).filter(|filled| *filled < self.batch)?;
        self.works = VecDeque::load(input)?;
        for time in [&mut self.opens, &mut self.ends, &mut self.worked] {
            *time = Time::load(input)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    /// Writes that arrive as soon as they may: a batch at their own pace, and a stop until the previous batch has been
    /// processed.
    #[test]
    fn a_batch_at_full_speed_and_a_stop() {
        let mut upkeep = Upkeep::new(US(10), 4, None);
        let mut now = Time::ZERO;
        let mut ends = Vec::new();
        for _ in 0..20 {
            let end = upkeep.opens().max(now) + US(2);
            upkeep.takes(now, end);
            now = end;
            ends.push(now);
        }
        // Batches end at 8 and 16, their work at 48 and 88; the third begins at 48, the fourth at 88, the fifth at 128.
        let expected = [2, 4, 6, 8, 10, 12, 14, 16, 50, 52, 54, 56, 90, 92, 94, 96, 130, 132, 134, 136];
        assert_eq!(ends, expected.map(US));
        assert_eq!(upkeep.busy(US(136)), US(128));
    }

    /// Writes that arrive all at once get their times at once; the core's work is counted when it happens.
    #[test]
    fn what_is_to_come_is_not_yet_done() {
        let mut upkeep = Upkeep::new(US(10), 4, None);
        for n in 0..20 {
            let end = upkeep.opens().max(US(2 * n)) + US(2);
            upkeep.takes(Time::ZERO, end);
        }
        assert_eq!([0, 8, 30, 48, 1_000].map(|now| upkeep.busy(US(now))), [0, 0, 22, 40, 200].map(US));
    }

    #[test]
    fn writes_that_come_more_slowly_never_wait() {
        let mut upkeep = Upkeep::new(US(10), 4, None);
        for n in 0..100 {
            let now = US(11 * n);
            assert!(upkeep.opens() <= now);
            upkeep.takes(now, now + US(2));
        }
        // The 25th batch is full at 1,091.
        assert_eq!(upkeep.busy(US(1_100)), US(24 * 40 + 9));
    }
}
