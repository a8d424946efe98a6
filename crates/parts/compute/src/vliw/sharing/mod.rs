//! Memory that cores share while they compute.
//!
//! A core that computes a section takes bytes from memory as evenly as it computes. While memory has enough for all, nobody is slowed down; where it has not, no core gets more than an equal
//! share until it has all that it asks for (max-min fairness), and computes as much slower. What is carried for flash goes first: it is taken off what cores had to share since shares last
//! changed.

#[cfg(test)]
mod tests;

use engine::Time;

/// Parts of a picosecond in which progress is counted.
const WHOLE: u128 = 1 << 32;

/// A section that is being computed.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// What is left of its time alone, in parts of picoseconds.
    left: u128,
    /// Bytes a second that it takes at full speed.
    rate: u64,
}

/// Memory with so many bytes a second, and the cores that compute beside it.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    bandwidth: u64,
    jobs: Vec<Option<Job>>,
    /// Up to when progress has been counted; bytes that were carried for flash since.
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

    /// A core begins a section that takes it so long alone, and moves so many bytes meanwhile.
    pub(super) fn begin(&mut self, now: Time, core: usize, alone: Time, bytes: u64) {
        self.count(now);
        let alone = u128::from(alone.ps().max(1));
        let rate = u64::try_from(u128::from(bytes) * 1_000_000_000_000 / alone).unwrap_or(u64::MAX);
        self.jobs[core] = Some(Job { left: alone * WHOLE, rate });
    }

    /// Whether a core has computed its section; then it computes nothing.
    pub(super) fn ends(&mut self, now: Time, core: usize) -> bool {
        self.count(now);
        let is_over = self.jobs[core].is_some_and(|job| job.left == 0);
        if is_over {
            self.jobs[core] = None;
        }
        is_over
    }

    /// Bytes are carried for flash.
    pub(super) fn carry(&mut self, bytes: u64) {
        self.carried += bytes;
    }

    /// When each core that computes will have done so, if nobody else begins or ends.
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

    /// The most that a core gets, in bytes a second.
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

/// Progress a picosecond of a core that asks for so many bytes a second and gets at most so many.
fn speed(rate: u64, most: u64) -> u128 {
    if rate <= most { WHOLE } else { WHOLE * u128::from(most) / u128::from(rate) }
}
