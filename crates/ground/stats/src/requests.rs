//! What was measured of requests of one kind.

use crate::Histogram;
use engine::Time;

/// Requests of one kind of one flow.
#[derive(Clone, Debug, Default)]
pub struct OpStats {
    /// Requests completed.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// From arrival to completion, picoseconds.
    pub latency: Histogram,
    /// The three parts of it; kept apart only from the first request on that makes them differ.
    parts: Option<Box<Parts>>,
}

/// Latencies of the stages, picoseconds.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// From arrival to submission.
    pub submission: Histogram,
    /// From submission to completion.
    pub completion: Histogram,
    /// Inside the device.
    pub device: Histogram,
}

impl OpStats {
    /// Takes a completed request in: times from its arrival to submission, inside the device, and to completion.
    #[inline]
    pub fn record(&mut self, bytes: u64, submission: Time, device: Time, latency: Time) {
        if self.parts.is_some() || device != latency {
            self.record_parts(submission, device, latency);
        }
        self.requests += 1;
        self.bytes += bytes;
        self.latency.record(latency.ps());
    }

    fn record_parts(&mut self, submission: Time, device: Time, latency: Time) {
        let parts = self.parts.get_or_insert_with(|| {
            // Until now everything was device time.
            let mut submission = Histogram::new();
            (0..self.requests).for_each(|_| submission.record(0));
            Box::new(Parts { submission, completion: self.latency.clone(), device: self.latency.clone() })
        });
        parts.submission.record(submission.ps());
        parts.completion.record((latency - submission).ps());
        parts.device.record(device.ps());
    }

    /// Takes another flow's requests in.
    pub fn merge(&mut self, other: &OpStats) {
        if self.parts.is_some() || other.parts.is_some() {
            let mut mine = self.parts();
            let theirs = other.parts();
            mine.submission.merge(&theirs.submission);
            mine.completion.merge(&theirs.completion);
            mine.device.merge(&theirs.device);
            self.parts = Some(Box::new(mine));
        }
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
    }

    /// The stages' latencies.
    pub fn parts(&self) -> Parts {
        match &self.parts {
            Some(parts) => (**parts).clone(),
            None => {
                let mut submission = Histogram::new();
                (0..self.requests).for_each(|_| submission.record(0));
                Parts { submission, completion: self.latency.clone(), device: self.latency.clone() }
            }
        }
    }
}
