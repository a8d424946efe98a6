//! Jobs of exponential length that touch no memory: what queueing theory is checked with.

use proto::cpu::{Op, OpKind, Service};

use crate::program::{Key, Params};
use crate::service::list::{Built, Entry};
use crate::synth::{Purpose, Stream};

/// Instructions of one operation at most: a core that takes one in is not far ahead of the clock then.
const PIECE: u64 = 1000;

const MEAN: Key = Key {
    name: "mean",
    what: "instructions of a job in the mean, each of which needs the one before: cycles",
    default: "20000",
};
const SEED: Key = Key { name: "seed", what: "of the lengths of jobs", default: "1" };

pub(crate) const ENTRY: Entry = Entry {
    name: "exponential",
    source: "queueing theory",
    what: "computes for an exponentially distributed time",
    keys: &[MEAN, SEED],
    build,
};

fn build(params: &Params) -> Built {
    Ok(Box::new(Exponential {
        mean: params.integer(MEAN.name, 1..=1_000_000_000)? as f64,
        seed: params.integer(SEED.name, 0..=u64::MAX)?,
        left: Vec::new(),
    }))
}

struct Exponential {
    mean: f64,
    seed: u64,
    /// Instructions that the job of each slot has left.
    left: Vec<u64>,
}

impl Service for Exponential {
    fn footprint(&self) -> u64 {
        proto::memory::PAGE
    }

    fn text(&self) -> u32 {
        PIECE as u32 * 4
    }

    fn start(&mut self, slot: u32, job: u64) {
        let at = slot as usize;
        if self.left.len() <= at {
            self.left.resize(at + 1, 0);
        }
        let mut stream = Stream::new(kernel::mix(job).wrapping_add(kernel::mix(self.seed)), Purpose::Request);
        // One minus a number from [0, 1) is not zero; an operation has an instruction at least.
        self.left[at] = ((-libm::log(1.0 - stream.unit()) * self.mean) as u64).max(1);
    }

    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool {
        let left = &mut self.left[slot as usize];
        let count = (*left).min(PIECE);
        *left -= count;
        // The piece before ends with the operation before. The first of a job needs nothing that its core knows of.
        tape.push(Op {
            kind: OpKind::Chain,
            width: 0,
            count: count as u16,
            needs: [1, 0],
            pc: 4 * (count as u32 - 1),
            address: 0,
        });
        *left > 0
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
}
