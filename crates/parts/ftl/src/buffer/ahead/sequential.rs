//! Look-ahead of streams.

use super::LookAhead;
use config::units::Bytes;
use engine::Snapshot;
use std::ops::Range;

/// Parameters of `sequential`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of streams followed at once; a new one replaces the least recently read.
    #[schemars(range(min = 1, max = 4_096))]
    pub streams: u32,
    /// Number of consecutive reads, each starting where the previous one ended, before the first look-ahead.
    #[schemars(range(min = 1))]
    pub trigger: u32,
    /// Maximum amount of data read ahead of a stream.
    pub window: Bytes,
}

impl Default for Params {
    fn default() -> Params {
        Params { streams: 16, trigger: 2, window: Bytes::new(1 << 20) }
    }
}

/// Run of consecutive reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    /// Start of the next read, in bytes.
    next: u64,
    /// Number of consecutive reads; their bytes follow.
    reads: u32,
    run: u64,
    /// End of the data read ahead.
    ahead: u64,
    /// Time of the last read, as the number of reads of all streams so far.
    used: u64,
}

engine::snapshot!(Stream { next, reads, run, ahead, used });

/// Follows streams and reads ahead of each as much as the stream has read so far, up to the window, in whole steps.
#[derive(Clone, Debug)]
pub struct Sequential {
    streams: Vec<Stream>,
    most: usize,
    trigger: u32,
    window: u64,
    step: u64,
    reads: u64,
}

impl Sequential {
    /// Creates the policy without streams. `step`: bytes read from flash at once.
    pub fn new(params: &Params, step: u64) -> Sequential {
        Sequential {
            streams: Vec::with_capacity(params.streams as usize),
            most: params.streams as usize,
            trigger: params.trigger,
            window: params.window.get(),
            step,
            reads: 0,
        }
    }

    /// Returns the stream that a read from `start` continues or, without one, a new stream that begins with it.
    fn stream(&mut self, start: u64) -> Option<&mut Stream> {
        let at = match self.streams.iter().position(|s| s.next == start) {
            Some(at) => at,
            None => {
                let fresh = Stream { next: start, reads: 0, run: 0, ahead: 0, used: 0 };
                if self.streams.len() < self.most {
                    self.streams.push(fresh);
                    self.streams.len() - 1
                } else {
                    let oldest = self.streams.iter().enumerate().min_by_key(|(_, s)| s.used)?.0;
                    self.streams[oldest] = fresh;
                    oldest
                }
            }
        };
        self.streams.get_mut(at)
    }
}

impl LookAhead for Sequential {
    fn reads(&mut self, start: u64, end: u64) -> Option<Range<u64>> {
        self.reads += 1;
        let (now, trigger, window, step) = (self.reads, self.trigger, self.window, self.step);
        let stream = self.stream(start)?;
        stream.used = now;
        stream.next = end;
        stream.run += end - start;
        stream.reads = stream.reads.saturating_add(1);
        // The first read of a run follows none.
        if stream.reads <= trigger {
            return None;
        }
        let target = (end + stream.run.min(window)).next_multiple_of(step);
        let from = stream.ahead.max(end);
        if target <= from {
            return None;
        }
        stream.ahead = target;
        Some(from..target)
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.streams.save(out);
        self.reads.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let streams = Vec::load(input).filter(|s: &Vec<Stream>| s.len() <= self.most)?;
        self.reads = u64::load(input)?;
        self.streams = streams;
        self.streams.reserve(self.most - self.streams.len());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn policy(streams: u32, trigger: u32) -> Sequential {
        let params = Params { streams, trigger, window: Bytes::from_kib(64) };
        Sequential::new(&params, 16 * KIB)
    }

    /// Reads of 4 KiB in order, steps of 16 KiB, by hand: after the third read (12 KiB) as much again is wanted, 24 KiB
    /// in total, or 32 KiB in steps; and so on up to 64 KiB ahead.
    #[test]
    fn the_window_grows_with_the_run() {
        let mut policy = policy(4, 2);
        let mut reads = (0..40u64).map(|n| policy.reads(4 * n * KIB, 4 * (n + 1) * KIB));
        assert_eq!((reads.next(), reads.next()), (Some(None), Some(None)));
        assert_eq!(reads.next().flatten(), Some(12 * KIB..32 * KIB));
        // 16 KiB read: 32 are there already. 20 KiB read: 40, which is 48 in steps.
        assert_eq!(reads.next().flatten(), None);
        assert_eq!(reads.next().flatten(), Some(32 * KIB..48 * KIB));
        let last = reads.flatten().last().expect("the run goes on");
        // 160 KiB read, 64 KiB ahead.
        assert_eq!(last.end, 224 * KIB);
    }

    #[test]
    fn a_read_elsewhere_begins_a_stream_and_the_oldest_is_forgotten() {
        let mut policy = policy(2, 1);
        assert_eq!(policy.reads(0, 4096), None);
        assert_eq!(policy.reads(1 << 30, (1 << 30) + 4096), None);
        // Both are followed, in turn.
        assert_eq!(policy.reads(4096, 8192), Some(8192..16 * KIB));
        assert!(policy.reads((1 << 30) + 4096, (1 << 30) + 8192).is_some());
        // A third replaces the first.
        assert_eq!(policy.reads(1 << 40, (1 << 40) + 4096), None);
        assert_eq!(policy.reads(8192, 12288), None);
        // A step back is not a stream.
        assert_eq!(policy.reads(1 << 40, (1 << 40) + 4096), None);
    }
}
