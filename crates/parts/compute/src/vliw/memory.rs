//! Memory as seen by cores: the caches of each core, and the bandwidth that all of them share.

use super::spec::CacheSpec;
use config::SpecError;
use engine::Time;
use mem::cache::replace::ReplacementPolicy;
use mem::cache::{Shape, Tags};
use std::{
    collections::VecDeque,
    ops::{AddAssign, SubAssign},
};

/// Cache misses of accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Loads that miss the first level and hit the second.
    pub first: u64,
    /// Loads, and stores that miss the first level, that also miss the second and were not prefetched.
    pub second: u64,
    /// Loads and stores that miss both levels, on lines that a prefetcher has requested.
    pub ahead: u64,
    /// Dirty lines of the second level written to memory.
    pub written: u64,
}

impl AddAssign for Misses {
    fn add_assign(&mut self, other: Misses) {
        self.first += other.first;
        self.second += other.second;
        self.ahead += other.ahead;
        self.written += other.written;
    }
}

impl SubAssign for Misses {
    fn sub_assign(&mut self, other: Misses) {
        self.first -= other.first;
        self.second -= other.second;
        self.ahead -= other.ahead;
        self.written -= other.written;
    }
}

/// Cache level: its lines, and whether each was changed.
struct Level {
    tags: Tags<bool>,
    shift: u32,
}

impl Level {
    fn new(spec: &CacheSpec) -> Level {
        let shape = Shape { sets: spec.sets(), ways: spec.ways };
        Level { tags: Tags::new(shape, &ReplacementPolicy::lru), shift: spec.line.get().trailing_zeros() }
    }

    /// Returns whether the level has the line of a byte; counts as a use, and a store changes the line.
    #[inline]
    fn hits(&mut self, byte: u64, write: bool) -> bool {
        let Some(place) = self.tags.find(byte >> self.shift) else { return false };
        self.tags.touch(place);
        *self.tags.meta_mut(place) |= write;
        true
    }

    /// Inserts the line of a byte; returns the first byte of an evicted changed line.
    #[inline]
    fn take(&mut self, byte: u64, write: bool) -> Option<u64> {
        let gone = self.tags.insert(byte >> self.shift, write, |_| true)?.1?;
        gone.1.then_some(gone.0 << self.shift)
    }
}

/// State of both cache levels after a series of accesses, independent of time.
pub struct Caches {
    first: Level,
    second: Level,
    streams: Streams,
}

impl Caches {
    /// Creates empty caches.
    ///
    /// # Errors
    /// A level whose size is not a multiple of its lines and ways.
    pub fn new(first: &CacheSpec, second: &CacheSpec) -> Result<Caches, SpecError> {
        first.check().map_err(|error| error.within("l1"))?;
        second.check().map_err(|error| error.within("l2"))?;
        Ok(Caches { first: Level::new(first), second: Level::new(second), streams: Streams::new(0) })
    }

    /// Adds a prefetcher of `streams` streams behind the caches.
    #[must_use]
    pub fn with_streams(self, most: u32) -> Caches {
        Caches { streams: Streams::new(most), ..self }
    }

    /// Accesses a byte; returns its misses.
    #[inline]
    pub fn access(&mut self, byte: u64, write: bool) -> Misses {
        let mut misses = Misses::default();
        if self.first.hits(byte, write) {
            return misses;
        }
        // The first level allocates lines for loads only; a store that misses it goes on to the second.
        let has = self.second.hits(byte, write);
        if !has {
            let is_ahead = self.streams.missed(byte >> self.second.shift);
            (misses.second, misses.ahead) = (u64::from(!is_ahead), u64::from(is_ahead));
            misses.written += u64::from(self.second.take(byte, write).is_some());
        }
        if !write {
            misses.first = u64::from(has);
            if let Some(gone) = self.first.take(byte, false)
                && !self.second.hits(gone, true)
            {
                misses.written += u64::from(self.second.take(gone, true).is_some());
            }
        }
        misses
    }
}

// Stream prefetcher: for lines missed one behind the other, it requests the next one before a core does.
//
// Similar to a C66x's, from memory of SPRUGW0: a few streams at once, begun by a miss on the line behind an earlier
// miss. *Chosen*: it follows streams upwards only, remembers as many beginnings as streams, and replaces the least
// recently used. It does not know when its line arrives: the part that needs the line knows the cost.

/// Streams that are followed, and lines that may begin one.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    most: usize,
    /// Next line of each stream, most recently used stream first.
    next: VecDeque<u64>,
    /// Lines behind the last misses outside all streams.
    begins: VecDeque<u64>,
}

impl Streams {
    /// Creates a prefetcher for `most` streams; zero disables it.
    pub(super) fn new(most: u32) -> Streams {
        Streams { most: most as usize, ..Streams::default() }
    }

    /// Handles a miss of a line; returns whether it had been requested.
    #[inline]
    pub(super) fn missed(&mut self, line: u64) -> bool {
        if self.most == 0 {
            return false;
        }
        let is_ahead = take(&mut self.next, line);
        let of = if is_ahead || take(&mut self.begins, line) { &mut self.next } else { &mut self.begins };
        of.push_front(line + 1);
        of.truncate(self.most);
        is_ahead
    }
}

/// Removes a line from a list; returns whether it was in it.
fn take(lines: &mut VecDeque<u64>, line: u64) -> bool {
    lines.iter().position(|one| *one == line).and_then(|at| lines.remove(at)).is_some()
}

// Memory shared by computing cores.
//
// A core that computes a section takes bytes from memory as evenly as it computes. While memory has enough for all, no
// core is slowed down. Otherwise no core gets more than an equal share until it has its full demand (max-min fairness),
// and it computes proportionally slower. Transfers for flash have priority: they reduce the bytes that cores had to
// share since the last change of shares.

/// Parts of a picosecond in which progress is counted.
const WHOLE: u128 = 1 << 32;

/// Section being computed.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// Remaining time alone, in parts of picoseconds.
    left: u128,
    /// Bytes per second at full speed.
    rate: u64,
}

/// Memory bandwidth, and the cores that compute with it.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    bandwidth: u64,
    jobs: Vec<Option<Job>>,
    /// Time up to which progress has been counted, and bytes carried for flash since.
    counted: Time,
    carried: u64,
    /// Rates of jobs, in increasing order: empty between calls.
    rates: Vec<u64>,
}

impl Sharing {
    pub(super) fn new(cores: u16, bandwidth: u64) -> Sharing {
        Sharing {
            bandwidth,
            jobs: vec![None; cores.into()],
            counted: Time::ZERO,
            carried: 0,
            rates: Vec::with_capacity(cores.into()),
        }
    }

    /// Begins a core's section that takes the time `alone` without contention, and moves `bytes` bytes.
    pub(super) fn begin(&mut self, now: Time, core: usize, alone: Time, bytes: u64) {
        self.count(now);
        let alone = u128::from(alone.ps().max(1));
        let rate = u64::try_from(u128::from(bytes) * 1_000_000_000_000 / alone).unwrap_or(u64::MAX);
        self.jobs[core] = Some(Job { left: alone * WHOLE, rate });
    }

    /// Returns whether a core has computed its section; if so, it becomes idle.
    pub(super) fn ends(&mut self, now: Time, core: usize) -> bool {
        self.count(now);
        let is_over = self.jobs[core].is_some_and(|job| job.left == 0);
        if is_over {
            self.jobs[core] = None;
        }
        is_over
    }

    /// Carries bytes for flash.
    pub(super) fn carry(&mut self, bytes: u64) {
        self.carried += bytes;
    }

    /// End time of each core's section, if no other core begins or ends.
    pub(super) fn ends_at(&mut self) -> impl Iterator<Item = (usize, Time)> + '_ {
        let most = self.most(self.bandwidth);
        let counted = self.counted;
        self.jobs.iter().enumerate().filter_map(move |(core, job)| {
            let job = (*job)?;
            let takes = job.left.div_ceil(speed(job.rate, most).max(1));
            Some((core, counted + Time::from_ps(u64::try_from(takes).unwrap_or(u64::MAX / 4))))
        })
    }

    /// Counts progress until now.
    fn count(&mut self, now: Time) {
        let past = now - self.counted;
        if past == Time::ZERO {
            return;
        }
        self.counted = now;
        let had = u128::from(self.bandwidth) * u128::from(past.ps()) / 1_000_000_000_000;
        let carried = u64::try_from(u128::from(self.carried).min(had)).unwrap_or(u64::MAX);
        self.carried -= carried;
        let taken = u128::from(carried) * 1_000_000_000_000 / u128::from(past.ps());
        let most = self.most(self.bandwidth.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX)));
        for job in self.jobs.iter_mut().flatten() {
            job.left = job.left.saturating_sub(u128::from(past.ps()) * speed(job.rate, most));
        }
    }

    /// Largest bandwidth of a core, bytes per second.
    fn most(&mut self, bandwidth: u64) -> u64 {
        let mut rates = std::mem::take(&mut self.rates);
        rates.extend(self.jobs.iter().flatten().map(|job| job.rate));
        rates.sort_unstable();
        let (mut left, mut most) = (bandwidth, u64::MAX);
        for (at, rate) in rates.iter().enumerate() {
            let share = left / (rates.len() - at) as u64;
            if *rate > share {
                most = share;
                break;
            }
            left -= rate;
        }
        rates.clear();
        self.rates = rates;
        most
    }
}

/// Progress per picosecond of a core that asks for `rate` bytes per second and gets at most `most`.
fn speed(rate: u64, most: u64) -> u128 {
    if rate <= most { WHOLE } else { WHOLE * u128::from(most) / u128::from(rate) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Time;

    fn ahead(most: u32, lines: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut streams = Streams::new(most);
        lines.into_iter().filter(|line| streams.missed(*line)).collect()
    }

    /// The first two lines of a stream are missed before it is known to be one.
    #[test]
    fn the_third_line_of_a_stream_has_been_asked_for() {
        assert_eq!(ahead(1, 10..16), [12, 13, 14, 15]);
        assert_eq!(ahead(0, 10..16), [0; 0]);
        // Upwards alone, and not with a gap.
        assert_eq!(ahead(8, (10..16).rev()), [0; 0]);
        assert_eq!(ahead(8, (10..40).step_by(2)), [0; 0]);
    }

    /// Streams in turn, one more than are followed: each has been forgotten when its turn comes.
    #[test]
    fn as_many_streams_as_are_followed() {
        let in_turn =
            |streams: u64| (0..10).flat_map(move |line| (0..streams).map(move |at| 1_000 * at + line));
        assert_eq!(ahead(4, in_turn(4)).len(), 4 * 8);
        assert_eq!(ahead(4, in_turn(5)).len(), 0);
    }

    /// Other lines between those of a stream do not end it, as long as they are fewer than are remembered.
    #[test]
    fn a_stream_outlives_single_misses() {
        let lines = (0..10).flat_map(|line| [line, 1_000 + 7 * line]);
        assert_eq!(ahead(2, lines).len(), 8);
    }

    const SECOND: Time = Time::from_ms(1_000);

    /// End times of sections, by core, with the given start times, times alone, and bytes.
    fn run(bandwidth: u64, jobs: &[(Time, Time, u64)]) -> Vec<Time> {
        let mut sharing = Sharing::new(jobs.len() as u16, bandwidth);
        let mut over = vec![Time::ZERO; jobs.len()];
        let mut begun = 0;
        loop {
            let next = sharing.ends_at().min_by_key(|(_, at)| *at);
            let begins = jobs.get(begun).map(|(at, _, _)| *at);
            match (next, begins) {
                (None, None) => return over,
                (Some((core, at)), begins) if begins.is_none_or(|begins| at <= begins) => {
                    assert!(sharing.ends(at, core));
                    over[core] = at;
                }
                _ => {
                    let (at, alone, bytes) = jobs[begun];
                    sharing.begin(at, begun, alone, bytes);
                    begun += 1;
                }
            }
        }
    }

    fn near(found: Time, expected: f64) {
        assert!((found.ps() as f64 / 1e12 - expected).abs() < 1e-6, "{found} for {expected} s");
    }

    /// By hand: three cores ask for 2, 4 and 10 bytes a second of 12. The first gets 2, the others 5 each: the second its 4, so that 6 are left for the third, which computes at 0.6 of its speed until the
    /// others end after a second; then it has 10, and needs 0.4 s more.
    #[test]
    fn nobody_gets_more_than_a_share_that_others_want() {
        let over = run(12, &[(Time::ZERO, SECOND, 2), (Time::ZERO, SECOND, 4), (Time::ZERO, SECOND, 10)]);
        near(over[0], 1.0);
        near(over[1], 1.0);
        near(over[2], 1.4);
    }

    /// Two of 8 bytes a second share 10: each computes at 5/8. The second begins after half a second, in which the first had all it wants.
    #[test]
    fn who_comes_slows_down_those_who_are_there() {
        let over = run(10, &[(Time::ZERO, SECOND, 8), (Time::from_ms(500), SECOND, 8)]);
        // The first has half left, at 5/8: 0.8 s. The second has 0.5 left then.
        near(over[0], 1.3);
        near(over[1], 1.8);
    }

    /// A long section does not keep a short one waiting that begins behind it.
    #[test]
    fn a_short_section_waits_for_no_long_one() {
        let over =
            run(1_000, &[(Time::ZERO, SECOND.times(100), 15_000), (Time::ZERO, Time::from_ms(100), 10)]);
        near(over[0], 100.0);
        near(over[1], 0.1);
    }

    /// A section that needs more than the bandwidth takes as long as its bytes need.
    #[test]
    fn nobody_is_faster_than_memory() {
        near(run(10, &[(Time::ZERO, SECOND, 50)])[0], 5.0);
        near(run(10, &[(Time::ZERO, Time::ZERO, 0)])[0], 1e-12);
    }

    /// Data from flash goes first: 5 of 10 bytes a second for a second, and one core wants all 10.
    #[test]
    fn what_is_carried_for_flash_goes_first() {
        let mut sharing = Sharing::new(1, 10);
        sharing.begin(Time::ZERO, 0, SECOND, 10);
        sharing.carry(5);
        assert!(!sharing.ends(SECOND, 0));
        let ends: Vec<_> = sharing.ends_at().collect();
        near(ends[0].1, 1.5);
        assert!(sharing.ends(ends[0].1, 0));
        // More than there is for everybody waits for the next second.
        sharing.begin(ends[0].1, 0, SECOND, 10);
        sharing.carry(20);
        assert!(!sharing.ends(ends[0].1 + SECOND, 0));
        near(sharing.ends_at().next().unwrap().1, 3.5);
    }
}
