//! Instructions of applications over time.

use engine::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// Marks in time that are kept: so many windows hold any run, because they double in length instead of growing in number.
const MOST: usize = 4096;

/// How many instructions of warps each application had issued at marks in time, a fixed distance apart.
#[derive(Clone, Debug)]
pub struct InstructionSeries {
    origin: Time,
    width: Time,
    /// The next mark.
    next: Time,
    /// What had been issued since the origin before each mark.
    marks: Vec<Box<[u64]>>,
}

/// A window of time, and what was issued in it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct InstructionWindow {
    /// Start of the window in simulated time.
    pub start_ns: f64,
    /// Length of the window. The last one ends with the run.
    pub width_ns: f64,
    /// Instructions of warps that each application issued in it.
    pub warp_instructions: Vec<u64>,
}

impl InstructionSeries {
    /// Marks every `width` from time zero on.
    ///
    /// # Panics
    /// If `width` is zero.
    pub(crate) fn new(width: Time) -> InstructionSeries {
        assert!(width > Time::ZERO, "windows of no length");
        InstructionSeries { origin: Time::ZERO, width, next: width, marks: Vec::new() }
    }

    /// Whether a mark has come.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now >= self.next
    }

    /// Records what had been issued at the marks up to `now`, before anything happens at `now`.
    pub(crate) fn record(&mut self, now: Time, issued: &[u64]) {
        while now >= self.next {
            self.marks.push(issued.into());
            if self.marks.len() == MOST {
                // Marks are sums: those in between say nothing that is still wanted.
                let mut nth = 0;
                self.marks.retain(|_| {
                    nth += 1;
                    nth % 2 == 0
                });
                self.width += self.width;
            }
            self.next += self.width;
        }
    }

    /// Begins again at `origin`.
    pub(crate) fn reset(&mut self, origin: Time) {
        self.marks.clear();
        (self.origin, self.next) = (origin, origin + self.width);
    }

    /// The windows; by now `issued` has been issued.
    pub(crate) fn windows(&self, issued: Vec<u64>) -> Vec<InstructionWindow> {
        let (origin, width) = (self.origin.as_ns_f64(), self.width.as_ns_f64());
        let mut before = vec![0; issued.len()];
        let sums = self.marks.iter().map(|mark| mark.to_vec()).chain([issued]);
        let window = |(n, sums): (usize, Vec<u64>)| {
            let warp_instructions = sums.iter().zip(&before).map(|(sum, before)| sum - before).collect();
            before = sums;
            InstructionWindow { start_ns: origin + n as f64 * width, width_ns: width, warp_instructions }
        };
        sums.enumerate().map(window).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued_in(series: &InstructionSeries, now: u64) -> Vec<u64> {
        series.windows(vec![now]).iter().map(|window| window.warp_instructions[0]).collect()
    }

    /// Four windows of 10 ns; what happens at a mark belongs to the window that it begins.
    #[test]
    fn windows_hold_what_was_issued_in_them() {
        let mut series = InstructionSeries::new(Time::from_ns(10));
        assert!(!series.is_due(Time::from_ns(9)) && series.is_due(Time::from_ns(10)));
        series.record(Time::from_ns(10), &[3]);
        series.record(Time::from_ns(35), &[5]);
        assert_eq!(issued_in(&series, 12), [3, 2, 0, 7]);
        assert_eq!(series.windows(vec![12])[3].start_ns, 30.0);
        series.reset(Time::from_ns(40));
        assert_eq!(issued_in(&series, 1), [1]);
        assert!(!series.is_due(Time::from_ns(49)) && series.is_due(Time::from_ns(50)));
    }

    /// An instruction every nanosecond, for longer than the first windows reach: as many in each, whatever their length.
    #[test]
    fn windows_double_instead_of_growing_in_number() {
        let mut series = InstructionSeries::new(Time::from_ns(1));
        for now in 1..=20_000 {
            series.record(Time::from_ns(now), &[now]);
        }
        let windows = series.windows(vec![20_000]);
        assert!(windows.len() <= MOST);
        let (last, full) = windows.split_last().expect("windows");
        assert!(full.iter().all(|w| w.width_ns == 8.0 && w.warp_instructions == [8]), "{full:?}");
        assert_eq!(last.start_ns + last.warp_instructions[0] as f64, 20_000.0);
    }
}
