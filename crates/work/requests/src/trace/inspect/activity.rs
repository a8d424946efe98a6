//! A trace over time, in a bounded number of intervals.

use serde::Serialize;

/// Intervals at most; at least half as many once a trace is long enough.
const INTERVALS: usize = 512;
/// The first width of an interval in picoseconds: a microsecond, or the second that a trace counts in.
const FINEST: u128 = 1_000_000;
const SECOND: u128 = 1_000_000_000_000;

/// Requests and bytes of a trace over time, from its first request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Activity {
    /// Length of an interval in seconds: the span in 256 to 512 intervals, a power of two of microseconds, or of seconds where times are
    /// whole seconds.
    pub interval_s: f64,
    /// Requests in each interval; those before the first request of the file count in the first.
    pub requests: Vec<u64>,
    /// Bytes that they move.
    pub bytes: Vec<u64>,
    /// Intervals without a request, of all.
    pub idle_share: f64,
    /// Requests per second of the intervals that have one.
    pub busy_rate_per_s: f64,
}

/// The running counts.
pub(crate) struct Intervals {
    first: Option<u128>,
    width: u128,
    counts: Vec<(u64, u64)>,
}

impl Intervals {
    pub(crate) fn new(whole_seconds: bool) -> Intervals {
        let width = if whole_seconds { SECOND } else { FINEST };
        Intervals { first: None, width, counts: Vec::new() }
    }

    pub(crate) fn add(&mut self, at: u128, bytes: u64) {
        let since = at.saturating_sub(*self.first.get_or_insert(at));
        while since / self.width >= INTERVALS as u128 {
            let pairs = self.counts.chunks(2);
            self.counts = pairs
                .map(|pair| {
                    pair.iter().fold((0, 0), |sum, one| (sum.0 + one.0, u64::saturating_add(sum.1, one.1)))
                })
                .collect();
            self.width *= 2;
        }
        // Below the number of intervals.
        let at = (since / self.width) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, (0, 0));
        }
        self.counts[at].0 += 1;
        self.counts[at].1 = self.counts[at].1.saturating_add(bytes);
    }

    /// `None` if all requests are in one interval.
    pub(crate) fn finish(self) -> Option<Activity> {
        let busy = self.counts.iter().filter(|(requests, _)| *requests > 0).count();
        let requests: u64 = self.counts.iter().map(|(requests, _)| requests).sum();
        let interval_s = self.width as f64 / 1e12;
        (self.counts.len() > 1).then(|| Activity {
            interval_s,
            idle_share: 1.0 - busy as f64 / self.counts.len() as f64,
            busy_rate_per_s: requests as f64 / (busy as f64 * interval_s),
            requests: self.counts.iter().map(|(requests, _)| *requests).collect(),
            bytes: self.counts.iter().map(|(_, bytes)| *bytes).collect(),
        })
    }
}

impl Activity {
    /// The requests over time as a row of bars, each of the tallest in eighths; a dot is an interval without any.
    pub(crate) fn bars(&self, columns: usize) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let width = self.requests.len().div_ceil(columns);
        let sums: Vec<u64> = self.requests.chunks(width).map(|chunk| chunk.iter().sum()).collect();
        let most = sums.iter().copied().max().unwrap_or_default().max(1);
        let bar = |sum: &u64| match sum {
            0 => '.',
            sum => BARS[((u128::from(*sum) * 8).div_ceil(u128::from(most)) - 1) as usize],
        };
        sums.iter().map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    const S: u128 = 1_000_000_000_000;

    /// A thousand seconds, with requests in the first hundred alone and one at the end.
    #[test]
    fn intervals_stay_bounded_and_count_everything_once() {
        let mut intervals = Intervals::new(false);
        (0..1000).for_each(|n| intervals.add(5 * S + n * S / 10, 512));
        intervals.add(1005 * S, 512);
        let activity = intervals.finish().unwrap();
        assert!((256..=512).contains(&activity.requests.len()), "{}", activity.requests.len());
        assert_eq!(activity.requests.iter().sum::<u64>(), 1001);
        assert_eq!(activity.bytes.iter().sum::<u64>(), 1001 * 512);
        // Busy for 100 s of 1000 s, to an interval or two.
        assert!((activity.idle_share - 0.9).abs() < 2.0 * activity.interval_s / 1000.0 + 0.001);
        assert!((activity.busy_rate_per_s / 10.0 - 1.0).abs() < 0.05, "{}", activity.busy_rate_per_s);
        let bars = activity.bars(20);
        assert!(bars.starts_with("██") && bars.contains("....") && bars.ends_with('▁'), "{bars}");
    }

    #[test]
    fn one_instant_has_no_activity() {
        let mut intervals = Intervals::new(false);
        intervals.add(7, 1);
        intervals.add(7, 1);
        assert!(intervals.finish().is_none());
    }
}
