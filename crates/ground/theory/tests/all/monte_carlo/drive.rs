//! A page-mapped drive without time: blocks, a map, frontiers, a victim rule.

use crate::monte_carlo::rng::Rng;
use std::collections::VecDeque;
use theory::wa::Frontiers;

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
    /// Open blocks of hot and of cold writes, or of the host and of the collector; one if they are shared.
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
    /// `closed` closed blocks in the steady state; pages below `hot_pages` are hot.
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

    /// Write amplification and mean histogram of closed blocks over `turns`, after `warm_up`.
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
