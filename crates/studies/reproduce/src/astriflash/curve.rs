//! Fig. 1: the miss ratio of DRAM against its share of the data, without a machine.
//!
//! The programs' accesses go through a last-level cache, as in the paper least recently used; what it misses goes to a
//! DRAM of pages, least recently used as well, of every capacity at once (R. L. Mattson et al., IBM Systems Journal
//! 9(2), 1970: the distance of an access is how many other pages were accessed since its own; it hits if the capacity
//! is larger).

use super::super::expected::Figure;
use super::super::study::Entry;
use super::suite::Suite;
use config::Diagnostic;
use mem::cache::replace::ReplacementPolicy;
use mem::cache::{Shape, Tags};
use programs::service::{self, Service};
use proto::memory::{CPU_LINE, PAGE};
use rustc_hash::FxHashMap;

/// Gibibytes of the data set. With as many accesses as below, the largest share is full before they count.
const GIBIBYTES: u64 = 4;
/// The last-level cache is 16 MiB of 256 GiB, 16 ways (Table I).
const LLC_SHARE: u64 = 16_384;
const LLC_WAYS: u32 = 16;
/// Accesses that go to DRAM; the first half warms it.
const ACCESSES: usize = 3_000_000;
/// Shares of the data set, in thousandths: 0.5 to 10 %.
const SHARES: [u64; 20] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100];
/// The curve is flat where it falls this many times more slowly than between the first two shares.
const FLAT: f64 = 10.0;

/// Value read from the mean curve in per cent, and notes.
type Reading = fn(&[f64]) -> (f64, String);

/// A row that is read from the mean curve.
pub(super) fn entry(figure: &Figure, suite: &Suite, reading: Reading) -> Entry {
    let programs: Vec<&'static str> = suite.programs.iter().map(|(_, ours)| *ours).collect();
    let (id, figure, skew, drawn) = (figure.id.clone(), figure.clone(), suite.skew(), suite.curve.clone());
    Entry::new(id, Vec::new(), move |_| {
        let mean = match drawn.get() {
            Some(mean) => mean.clone(),
            None => {
                let mean = mean(&programs, &skew)?;
                drawn.get_or_init(|| mean).clone()
            }
        };
        let (value, note) = reading(&mean);
        figure.row(value, note)
    })
}

/// The mean of the programs' curves.
fn mean(programs: &[&str], skew: &str) -> Result<Vec<f64>, Diagnostic> {
    let curves = programs.iter().map(|program| curve(program, skew));
    let curves: Vec<Vec<f64>> = curves.collect::<Result<_, _>>()?;
    let mean = |n: usize| curves.iter().map(|curve| curve[n]).sum::<f64>() / curves.len() as f64;
    Ok((0..SHARES.len()).map(mean).collect())
}

/// Point where the curve flattens, by a rule of our own.
pub(super) fn knee_of(mean: &[f64]) -> (f64, String) {
    let shares = SHARES.map(|share| share as f64 / 10.0);
    let at = knee(&shares, mean, FLAT);
    let note = format!(
        "the seven programs without their work, not CloudSuite, and a rule of our own: where the mean curve falls ten times more slowly than \
         from 0.5 to 1 %{}; furthest from the chord, over 0.5 to 10 %: {} %",
        if at.is_none() { ": nowhere up to 10 %" } else { "" },
        furthest(&shares, mean)
    );
    (at.unwrap_or(f64::NAN), note)
}

/// The miss ratio at 3 % of DRAM.
pub(super) fn ratio_at_3(mean: &[f64]) -> (f64, String) {
    let shown = SHARES.iter().zip(mean).filter(|(share, _)| [10, 20, 30, 50, 100].contains(*share));
    let shown: Vec<String> =
        shown.map(|(share, ratio)| format!("{} % {:.2} %", *share as f64 / 10.0, 100.0 * ratio)).collect();
    let at = SHARES.iter().position(|share| *share == 30).map_or(f64::NAN, |n| mean[n]);
    (
        100.0 * at,
        format!("of the seven programs without their work, not of CloudSuite; at {}", shown.join(", ")),
    )
}

/// Miss ratios of a program at each share.
fn curve(program: &str, skew: &str) -> Result<Vec<f64>, Diagnostic> {
    let mut service = service::open(&format!("{program}:size={GIBIBYTES}GiB,work=0{skew}"))?;
    let bytes = GIBIBYTES << 30;
    let sets = (bytes / LLC_SHARE / CPU_LINE) as u32 / LLC_WAYS;
    let mut cache = Tags::<()>::new(Shape { sets, ways: LLC_WAYS }, &ReplacementPolicy::lru);
    let mut stack = Stack::new(ACCESSES);
    let capacities = SHARES.map(|share| (bytes / PAGE * share / 1000) as usize);
    let mut missed = [0u64; SHARES.len()];
    let counted = drive(service.as_mut(), |address| {
        let line = address / CPU_LINE;
        if let Some(place) = cache.find(line) {
            cache.touch(place);
            return true;
        }
        cache.insert(line, (), |()| true);
        let distance = stack.access(address / PAGE);
        if stack.accesses() > ACCESSES / 2 {
            for (missed, capacity) in missed.iter_mut().zip(capacities) {
                *missed += u64::from(distance.is_none_or(|distance| distance >= capacity));
            }
        }
        stack.accesses() < ACCESSES
    });
    debug_assert!(counted > 0);
    Ok(missed.map(|missed| missed as f64 / (ACCESSES - ACCESSES / 2) as f64).to_vec())
}

/// Executes jobs one after another and shows the address of each of their accesses, until told to stop; how many jobs
/// began.
fn drive(service: &mut dyn Service, mut access: impl FnMut(u64) -> bool) -> u64 {
    let mut tape = Vec::new();
    for job in 0.. {
        service.start(0, job);
        loop {
            tape.clear();
            let goes_on = service.step(0, &mut tape);
            if !tape.iter().filter(|op| op.width > 0).all(|op| access(op.address)) {
                return job + 1;
            }
            if !goes_on {
                break;
            }
        }
    }
    0
}

/// Pages in the order of their last accesses.
struct Stack {
    /// Last access of each page.
    last: FxHashMap<u64, usize>,
    /// A Fenwick tree over the accesses: one for each that is the last of its page.
    marks: Vec<u32>,
    now: usize,
}

impl Stack {
    fn new(accesses: usize) -> Stack {
        Stack { last: FxHashMap::default(), marks: vec![0; accesses + 1], now: 0 }
    }

    fn accesses(&self) -> usize {
        self.now
    }

    /// Number of other pages accessed since this one was; `None` at its first access.
    fn access(&mut self, page: u64) -> Option<usize> {
        self.now += 1;
        let distance = self.last.insert(page, self.now).map(|before| {
            let since = self.last.len() - self.sum(before) as usize;
            self.add(before, u32::MAX);
            since
        });
        self.add(self.now, 1);
        distance
    }

    /// Adds to the mark of an access, modulo 2^32.
    fn add(&mut self, at: usize, value: u32) {
        let mut n = at;
        while n < self.marks.len() {
            self.marks[n] = self.marks[n].wrapping_add(value);
            n += n & n.wrapping_neg();
        }
    }

    /// Marks up to an access.
    fn sum(&self, at: usize) -> u32 {
        let (mut n, mut sum) = (at, 0u32);
        while n > 0 {
            sum = sum.wrapping_add(self.marks[n]);
            n -= n & n.wrapping_neg();
        }
        sum
    }
}

/// The first `x` from which the curve falls `flat` times more slowly to the next than between the first two.
fn knee(x: &[f64], y: &[f64], flat: f64) -> Option<f64> {
    let slope = |n: usize| (y[n] - y[n + 1]) / (x[n + 1] - x[n]);
    let first = slope(0);
    (1..x.len() - 1).find(|n| slope(*n) * flat <= first).map(|n| x[n])
}

/// The `x` where a falling curve lies furthest below the line between its ends (V. Satopaa et al., Finding a "Kneedle"
/// in a Haystack, ICDCSW 2011). It depends on where the curve ends.
fn furthest(x: &[f64], y: &[f64]) -> f64 {
    let last = x.len() - 1;
    let below = |n: usize| y[0] + (y[last] - y[0]) * (x[n] - x[0]) / (x[last] - x[0]) - y[n];
    let best = (0..=last).max_by(|&a, &b| below(a).total_cmp(&below(b)));
    best.map_or(f64::NAN, |n| x[n])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_a_list() {
        let (mut stack, mut list, mut state) = (Stack::new(4000), Vec::<u64>::new(), 1u64);
        for _ in 0..4000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let page = (state >> 33) % 50 * ((state >> 60) % 3);
            let before = list.iter().position(|p| *p == page);
            if let Some(n) = before {
                list.remove(n);
            }
            list.insert(0, page);
            assert_eq!(stack.access(page), before);
        }
        assert_eq!(stack.accesses(), 4000);
    }

    #[test]
    fn knees_by_hand() {
        // y = 1/x falls by 1/2 from 1 to 2, and by 1/20 from 4 to 5: ten times less.
        let x: Vec<f64> = (1..=9).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 1.0 / x).collect();
        assert_eq!(knee(&x, &y, 9.99), Some(4.0));
        assert_eq!(knee(&x, &y, 1000.0), None);
        // Furthest from the chord where the slope is the chord's, x^2 = 9.
        assert_eq!(furthest(&x, &y), 3.0);
    }
}
