//! Page-mapped drive without time: blocks, a map, frontiers, a victim rule.

use super::Rng;
use std::collections::VecDeque;
use theory::wa::{self, Frontiers, Spare};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Victim {
    Greedy,
    Choices(usize),
    Oldest,
}

struct Block {
    pages: Vec<u32>,
    valid: u32,
}

pub(crate) struct Drive {
    units: usize,
    blocks: Vec<Block>,
    /// Block and slot of each logical page.
    map: Vec<(u32, u32)>,
    closed: VecDeque<u32>,
    free: Vec<u32>,
    /// Open blocks of hot and of cold writes, or of the host and of the collector; one block if shared.
    open: Vec<u32>,
    victim: Victim,
    frontiers: Frontiers,
    hot_pages: usize,
    rng: Rng,
    programmed: u64,
    written: u64,
    /// Closed blocks by valid count, summed over collections.
    census: Vec<u64>,
    census_on: bool,
}

impl Drive {
    /// Creates a drive of `closed` closed blocks in the steady state; pages below `hot_pages` are hot.
    pub(crate) fn new(
        closed: usize,
        units: usize,
        logical: usize,
        hot_pages: usize,
        victim: Victim,
        frontiers: Frontiers,
    ) -> Drive {
        let opens = if frontiers == Frontiers::Single { 1 } else { 2 };
        let total = closed + 2 * opens - 1;
        let blocks = (0..total + 1).map(|_| Block { pages: Vec::new(), valid: 0 }).collect();
        let mut free: Vec<u32> = (0..=total as u32).collect();
        free.truncate(total);
        let open = (0..opens).map(|_| free.pop().unwrap()).collect();
        let mut drive = Drive {
            units,
            blocks,
            map: vec![(u32::MAX, 0); logical],
            closed: VecDeque::new(),
            free,
            open,
            victim,
            frontiers,
            hot_pages,
            rng: Rng(42),
            programmed: 0,
            written: 0,
            census: vec![0; units + 1],
            census_on: false,
        };
        let mut order: Vec<u32> = (0..logical as u32).collect();
        for i in (1..order.len()).rev() {
            let j = drive.rng.below(i + 1);
            order.swap(i, j);
        }
        order.iter().for_each(|page| drive.write(*page));
        drive
    }

    /// Overwrites `turns` times the logical size, a share `hot_writes` of it in the hot pages.
    pub(crate) fn overwrite(&mut self, turns: f64, hot_writes: f64) {
        let logical = self.map.len();
        for _ in 0..(turns * logical as f64) as u64 {
            let hot = self.hot_pages > 0 && self.rng.unit() < hot_writes;
            let page = match hot {
                true => self.rng.below(self.hot_pages),
                false => self.hot_pages + self.rng.below(logical - self.hot_pages),
            };
            self.write(page as u32);
        }
    }

    /// Returns write amplification and mean histogram of closed blocks over `turns`, after `warm_up`.
    pub(crate) fn measure(&mut self, warm_up: f64, turns: f64, hot_writes: f64) -> (f64, Vec<f64>) {
        self.overwrite(warm_up, hot_writes);
        (self.programmed, self.written, self.census_on) = (0, 0, true);
        self.overwrite(turns, hot_writes);
        let all: u64 = self.census.iter().sum();
        let histogram = self.census.iter().map(|n| *n as f64 / all as f64).collect();
        (self.programmed as f64 / self.written as f64, histogram)
    }

    fn write(&mut self, page: u32) {
        let (block, _) = self.map[page as usize];
        if block != u32::MAX {
            self.blocks[block as usize].valid -= 1;
        }
        self.written += 1;
        let stream = self.stream(page, false);
        self.place(page, stream);
        if self.blocks[self.open[stream] as usize].pages.len() == self.units {
            self.reopen(stream);
            while self.free.len() < self.open.len() {
                self.collect();
            }
        }
    }

    fn stream(&self, page: u32, relocated: bool) -> usize {
        match self.frontiers {
            Frontiers::Single => 0,
            Frontiers::HostAndGc => usize::from(relocated),
            Frontiers::HotAndCold => usize::from(page as usize >= self.hot_pages),
        }
    }

    fn place(&mut self, page: u32, stream: usize) {
        let to = self.open[stream];
        let block = &mut self.blocks[to as usize];
        self.map[page as usize] = (to, block.pages.len() as u32);
        block.pages.push(page);
        block.valid += 1;
        self.programmed += 1;
    }

    fn reopen(&mut self, stream: usize) {
        self.closed.push_back(self.open[stream]);
        self.open[stream] = self.free.pop().unwrap();
    }

    fn collect(&mut self) {
        if self.census_on && self.rng.below(8) == 0 {
            for block in &self.closed {
                self.census[self.blocks[*block as usize].valid as usize] += 1;
            }
        }
        let at = self.pick();
        let from = match self.victim {
            Victim::Oldest => self.closed.pop_front().unwrap(),
            _ => self.closed.swap_remove_back(at).unwrap(),
        };
        let pages = std::mem::take(&mut self.blocks[from as usize].pages);
        self.blocks[from as usize].valid = 0;
        self.free.push(from);
        let valid: Vec<u32> = (0..)
            .zip(&pages)
            .filter(|(slot, page)| self.map[**page as usize] == (from, *slot))
            .map(|e| *e.1)
            .collect();
        for page in valid {
            let stream = self.stream(page, true);
            self.place(page, stream);
            if self.blocks[self.open[stream] as usize].pages.len() == self.units {
                self.reopen(stream);
            }
        }
    }

    fn pick(&mut self) -> usize {
        let valid = |at: usize| self.blocks[self.closed[at] as usize].valid;
        match self.victim {
            Victim::Oldest => 0,
            Victim::Greedy => (0..self.closed.len()).min_by_key(|at| valid(*at)).unwrap(),
            Victim::Choices(d) => {
                let n = self.closed.len();
                (0..d).map(|_| self.rng.below(n)).min_by_key(|at| valid(*at)).unwrap()
            }
        }
    }
}

// Write amplification and valid-count histograms under uniform random writes.

const SPARES: [f64; 4] = [0.07, 0.12, 0.28, 0.5];

fn simulate(blocks: usize, units: usize, spare: f64, victim: Victim, turns: f64) -> (f64, Vec<f64>, Spare) {
    let logical = ((blocks * units) as f64 / (1.0 + spare)).round() as usize;
    let mut drive = Drive::new(blocks, units, logical, 0, victim, Frontiers::Single);
    let (amplification, histogram) = drive.measure(4.0, turns, 0.0);
    (amplification, histogram, Spare::of_units((blocks * units) as u64, logical as u64))
}

/// Returns half the sum of the differences: the largest error in the probability of any set of counts.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    0.5 * a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>()
}

fn compare(
    blocks: usize,
    units: usize,
    victim: Victim,
    amplification: impl Fn(Spare) -> f64,
    histogram: impl Fn(Spare) -> Vec<f64>,
) {
    for spare in SPARES {
        let (measured, census, of) = simulate(blocks, units, spare, victim, 4.0);
        let expected = amplification(of);
        assert!(
            (measured / expected - 1.0).abs() < 0.01,
            "{victim:?} spare {spare}: {measured} for {expected}"
        );
        let apart = distance(&census, &histogram(of));
        assert!(apart < 0.03, "{victim:?} spare {spare}: histograms {apart} apart");
    }
}

#[test]
fn greedy_64() {
    compare(768, 64, Victim::Greedy, |s| wa::greedy(64, s), |s| wa::greedy_histogram(64, s));
}

#[test]
fn greedy_128() {
    compare(768, 128, Victim::Greedy, |s| wa::greedy(128, s), |s| wa::greedy_histogram(128, s));
}

#[test]
fn greedy_of_small_blocks() {
    compare(3000, 8, Victim::Greedy, |s| wa::greedy(8, s), |s| wa::greedy_histogram(8, s));
}

#[test]
fn two_choices() {
    compare(768, 64, Victim::Choices(2), |s| wa::d_choices(64, s, 2), |s| wa::d_choices_histogram(64, s, 2));
}

#[test]
fn ten_choices() {
    compare(
        768,
        64,
        Victim::Choices(10),
        |s| wa::d_choices(64, s, 10),
        |s| wa::d_choices_histogram(64, s, 10),
    );
}

#[test]
fn random() {
    compare(768, 64, Victim::Choices(1), wa::random, |s| wa::random_histogram(64, s));
}

#[test]
fn oldest() {
    compare(768, 64, Victim::Oldest, wa::fifo, |s| wa::fifo_histogram(64, s));
}

#[test]
fn few_blocks_are_exact() {
    for (blocks, units, logical) in [(4usize, 8usize, 24usize), (6, 8, 40), (8, 4, 27)] {
        let exact = wa::exact_greedy(blocks as u32, units as u16, logical as u32).unwrap();
        let mut drive = Drive::new(blocks, units, logical, 0, Victim::Greedy, Frontiers::Single);
        let (measured, _) = drive.measure(100.0, 20_000.0, 0.0);
        assert!((measured / exact - 1.0).abs() < 0.004, "{blocks} blocks: {measured} for {exact}");
    }
}

#[test]
fn more_blocks_approach_the_mean_field() {
    // The deviation is of order 1/N: halved by doubling, and extrapolated away by 2 A(2N) - A(N).
    let limit = wa::greedy(4, Spare::of_logical(1.0 / 3.0));
    let exact = |blocks: u32| wa::exact_greedy(blocks, 4, blocks * 3).unwrap();
    let errors = [8, 16, 32].map(|blocks| exact(blocks) / limit - 1.0);
    println!("{errors:?}");
    assert!(errors[0] > 1.6 * errors[1] && errors[1] > 1.6 * errors[2], "{errors:?}");
    let extrapolated = 2.0 * exact(32) - exact(16);
    assert!((extrapolated / limit - 1.0).abs() < 0.01, "{extrapolated} for {limit}");
}
