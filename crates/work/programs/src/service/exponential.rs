//! Jobs of exponential length that touch only untouched pages: the reference for queueing theory.

use config::Diagnostic;
use config::units::Bytes;
use proto::cpu::{Op, OpKind, Service};
use proto::memory::PAGE;
use requests::synth::{Purpose, Stream};

use super::{Built, Entry};
use crate::program::{Key, Params};
use crate::service::jobs::LINE;

/// Maximum instructions per operation: a core that takes one in does not get far ahead of the clock.
const PIECE: u64 = 1000;
/// Instructions of the computing loop if there are data accesses: one line, so that its text leaves the caches to the
/// data.
const LOOP: u32 = LINE as u32 / 4;
/// Bytes that an access to data loads.
const WIDTH: u8 = 8;
/// The largest data.
const LARGEST: u64 = 1 << 46;

const MEAN: Key = Key {
    name: "mean",
    what: "mean instructions per job, each dependent on the previous one: cycles",
    default: "20000",
};
const TOUCHES: Key = Key {
    name: "touches",
    what: "mean accesses per job, geometric, each to a random page of `data`; the work before each and after the last is \
           exponential with the same mean",
    default: "0",
};
const DATA: Key = Key { name: "data", what: "bytes of the pages, if there are accesses", default: "64GiB" };
const SEED: Key = Key { name: "seed", what: "seed of all random draws", default: "1" };

pub(crate) const ENTRY: Entry = Entry {
    name: "exponential",
    source: "queueing theory",
    what: "computes for an exponentially distributed time",
    keys: &[MEAN, TOUCHES, DATA, SEED],
    build,
};

fn build(params: &Params) -> Built {
    let (mean, touches) =
        (params.integer(MEAN.name, 1..=1_000_000_000)?, params.real(TOUCHES.name, 0.0..=1e3)?);
    Ok(Box::new(Exponential {
        mean: mean as f64 / (1.0 + touches),
        touches: touches / (1.0 + touches),
        pages: if touches > 0.0 { pages(params)? } else { 1 },
        code: if touches > 0.0 { LOOP } else { PIECE as u32 },
        seed: params.integer(SEED.name, 0..=u64::MAX)?,
        running: Vec::new(),
    }))
}

/// Returns the pages of data.
fn pages(params: &Params) -> Result<u64, Diagnostic> {
    let text = params.text(DATA.name).unwrap_or_default();
    let bytes = text.parse::<Bytes>().ok().map(Bytes::get).filter(|bytes| (PAGE..=LARGEST).contains(bytes));
    let allowed = || format!("{} to {}", Bytes::new(PAGE), Bytes::new(LARGEST));
    Ok(bytes.ok_or_else(|| params.refused(DATA.name, vec![allowed()]))? / PAGE)
}

struct Exponential {
    /// Mean instructions per period.
    mean: f64,
    /// Probability that a period ends with an access instead of the job.
    touches: f64,
    pages: u64,
    /// Instructions of its text: straight code for a piece, or a loop.
    code: u32,
    seed: u64,
    /// The job of each slot.
    running: Vec<Running>,
}

#[derive(Clone)]
struct Running {
    /// Instructions left in the period.
    left: u64,
    stream: Stream,
}

impl Exponential {
    /// Draws the instructions of a period: an operation has at least one.
    fn period(mean: f64, stream: &mut Stream) -> u64 {
        // One minus a number from [0, 1) is not zero.
        ((-libm::log(1.0 - stream.unit()) * mean) as u64).max(1)
    }
}

impl Service for Exponential {
    fn footprint(&self) -> u64 {
        self.pages * PAGE
    }

    fn text(&self) -> u32 {
        self.code * 4
    }

    fn start(&mut self, slot: u32, job: u64) {
        let mut stream = Stream::new(engine::mix(job).wrapping_add(engine::mix(self.seed)), Purpose::Request);
        let running = Running { left: Exponential::period(self.mean, &mut stream), stream };
        let at = slot as usize;
        if self.running.len() <= at {
            self.running.resize(at + 1, running.clone());
        }
        self.running[at] = running;
    }

    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool {
        let Running { left, stream } = &mut self.running[slot as usize];
        let count = (*left).min(PIECE);
        *left -= count;
        // The previous piece ends with the previous operation. The first operation of a job depends on nothing known
        // to its core.
        tape.push(Op {
            kind: OpKind::Chain,
            width: 0,
            count: count as u16,
            needs: [1, 0],
            pc: 4 * ((count as u32).min(self.code) - 1),
            address: 0,
        });
        if *left > 0 {
            return true;
        }
        if self.touches == 0.0 || stream.unit() >= self.touches {
            return false;
        }
        let address = stream.below(self.pages * PAGE / LINE) * LINE;
        tape.push(Op { kind: OpKind::Load, width: WIDTH, count: 1, needs: [1, 0], pc: 0, address });
        *left = Exponential::period(self.mean, stream);
        true
    }

    // Jobs change nothing.
    fn save(&self, _out: &mut Vec<u8>) {}

    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::service::open;

    #[test]
    fn lengths_are_exponential() {
        let mut service = open("exponential:mean=5000").unwrap();
        let (mut sum, mut squares, n) = (0.0, 0.0, 20_000);
        let mut tape = Vec::new();
        for job in 0..n {
            service.start(3, job);
            tape.clear();
            while service.step(3, &mut tape) {}
            let length: f64 = tape.iter().map(|op| f64::from(op.count)).sum();
            sum += length;
            squares += length * length;
        }
        let mean = sum / n as f64;
        let variance = squares / n as f64 - mean * mean;
        // Five standard errors, the variance's with a kurtosis of nine.
        assert!((mean / 5000.0 - 1.0).abs() < 5.0 / (n as f64).sqrt(), "{mean}");
        assert!((variance / 25e6 - 1.0).abs() < 5.0 * (8.0 / n as f64).sqrt(), "{variance}");
    }
    #[test]
    fn accesses_are_geometric_and_the_work_between_them_exponential() {
        let mut service = open("exponential:mean=6000,touches=2,data=1GiB").unwrap();
        assert_eq!(service.footprint(), 1 << 30);
        let (mut periods, mut touches, n) = (Vec::new(), Vec::new(), 20_000);
        for job in 0..n {
            let mut tape = Vec::new();
            service.start(1, job);
            while service.step(1, &mut tape) {}
            // What needs nothing of the job before stands first, and everything else needs what is before it.
            assert!(tape.iter().all(|op| op.needs == [1, 0] && op.pc < service.text()));
            let mut period = 0.0;
            touches.push(0.0);
            for op in &tape {
                if op.width > 0 {
                    assert!(op.address % 64 == 0 && op.address < 1 << 30);
                    *touches.last_mut().unwrap() += 1.0;
                    periods.push(std::mem::take(&mut period));
                } else {
                    period += f64::from(op.count);
                }
            }
            periods.push(period);
        }
        let moments = |of: &[f64]| {
            let mean = of.iter().sum::<f64>() / of.len() as f64;
            (mean, of.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / of.len() as f64)
        };
        // Five standard errors; a geometric number of mean 2 has the variance 2 (1 + 2), an exponential period of 2,000 its square.
        let (mean, variance) = moments(&touches);
        assert!((mean - 2.0).abs() < 5.0 * (6.0 / n as f64).sqrt(), "{mean}");
        assert!((variance / 6.0 - 1.0).abs() < 5.0 * (9.0 / n as f64).sqrt(), "{variance}");
        let ((mean, variance), n) = (moments(&periods), periods.len() as f64);
        assert!((mean / 2000.0 - 1.0).abs() < 5.0 / n.sqrt(), "{mean}");
        assert!((variance / 4e6 - 1.0).abs() < 5.0 * (8.0 / n).sqrt(), "{variance}");
    }

    #[test]
    fn data_that_cannot_be_is_refused() {
        for text in ["touches=-1", "touches=x", "touches=1,data=1KiB", "touches=1,data=1PiB"] {
            assert!(open(&format!("exponential:{text}")).is_err(), "{text}");
        }
    }
}
