//! A part of a trace.

use config::Diagnostic;
use engine::Time;
use proto::IoRequest;

use crate::trace::inspect::mix;

/// Which requests to keep. Times and addresses stay as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// The first `n`.
    First(u64),
    /// The first of every `k`.
    Every(u64),
    /// Those from `start` up to but without `end`.
    Window {
        /// The first time kept.
        start: Time,
        /// The first time not kept.
        end: Time,
    },
    /// A pseudo-random share, drawn request by request: the mix of kinds, sizes and streams stays.
    Share {
        /// Above 0, up to 1.
        share: f64,
        /// Another seed draws another sample.
        seed: u64,
    },
}

/// Whether a request is in a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Keep,
    LeaveOut,
    /// Nor is any after it.
    Stop,
}

/// A sample under way.
pub(crate) struct Sampler {
    sample: Sample,
    seen: u64,
}

impl Sample {
    pub(crate) fn sampler(self) -> Result<Sampler, Diagnostic> {
        let refuse = |what: String| Err(Diagnostic::new(what));
        match self {
            Sample::First(0) => refuse("a sample of the first 0 requests".to_owned()),
            Sample::Every(0) => refuse("a sample of every 0th request".to_owned()),
            Sample::Window { start, end } if start >= end => {
                refuse(format!("the window from {start} to {end} holds nothing"))
            }
            Sample::Share { share, .. } if !(share > 0.0 && share <= 1.0) => {
                refuse(format!("a share of {share}: it must be above 0 and at most 1"))
            }
            sample => Ok(Sampler { sample, seen: 0 }),
        }
    }
}

impl Sampler {
    pub(crate) fn judge(&mut self, request: &IoRequest) -> Verdict {
        let place = self.seen;
        self.seen += 1;
        let keep = match self.sample {
            Sample::First(n) if place >= n => return Verdict::Stop,
            Sample::First(_) => true,
            Sample::Every(k) => place.is_multiple_of(k),
            Sample::Window { end, .. } if request.at >= end => return Verdict::Stop,
            Sample::Window { start, .. } => request.at >= start,
            Sample::Share { share, seed } => {
                // 53 bits are what an f64 in [0, 1) holds.
                let draw = mix(mix(seed).wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 11;
                (draw as f64) < share * (1_u64 << 53) as f64
            }
        };
        if keep { Verdict::Keep } else { Verdict::LeaveOut }
    }
}

#[cfg(test)]
mod tests {
    use proto::IoOp;

    use super::*;

    fn kept(sample: Sample, n: u64) -> Vec<u64> {
        let mut sampler = sample.sampler().unwrap();
        let request = |at| IoRequest {
            at: Time::from_us(at),
            op: IoOp::Read,
            offset: 0,
            bytes: 512,
            flow: 0,
            fua: false,
        };
        let verdicts: Vec<Verdict> = (0..n).map(|at| sampler.judge(&request(at))).collect();
        let stop = verdicts.iter().position(|v| *v == Verdict::Stop).unwrap_or(verdicts.len());
        (0..stop as u64).filter(|at| verdicts[*at as usize] == Verdict::Keep).collect()
    }

    #[test]
    fn each_kind_keeps_what_it_says() {
        assert_eq!(kept(Sample::First(3), 10), [0, 1, 2]);
        assert_eq!(kept(Sample::Every(4), 10), [0, 4, 8]);
        assert_eq!(kept(Sample::Window { start: Time::from_us(2), end: Time::from_us(5) }, 10), [2, 3, 4]);
        assert_eq!(kept(Sample::Share { share: 1.0, seed: 1 }, 100).len(), 100);
    }

    #[test]
    fn a_share_is_binomial_and_its_seed_matters() {
        let n = 100_000;
        let one = kept(Sample::Share { share: 0.1, seed: 1 }, n);
        // Standard deviation sqrt(n p q) = 95.
        assert!((9_500..10_500).contains(&one.len()), "{}", one.len());
        let two = kept(Sample::Share { share: 0.1, seed: 2 }, n);
        let both = one.iter().filter(|at| two.binary_search(at).is_ok()).count();
        assert!((800..1_200).contains(&both), "{both}");
        assert_eq!(one, kept(Sample::Share { share: 0.1, seed: 1 }, n));
    }

    #[test]
    fn samples_that_mean_nothing_are_refused() {
        let window = Sample::Window { start: Time::from_us(2), end: Time::from_us(2) };
        let none = Sample::Share { share: 0.0, seed: 0 };
        let nan = Sample::Share { share: f64::NAN, seed: 0 };
        for sample in [Sample::First(0), Sample::Every(0), window, none, nan] {
            assert!(sample.sampler().is_err(), "{sample:?}");
        }
    }
}
