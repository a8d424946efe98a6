//! What flash as memory has done.

use engine::Time;
use nand::planes::Spread;
use proto::memory::PAGE;

/// Counters since the window began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectStats {
    /// When the window began.
    pub since: Time,
    /// Read commands that have arrived.
    pub reads: u64,
    /// Write commands that have arrived.
    pub writes: u64,
    /// Commands that have waited because a merge blocks their application.
    pub blocked: u64,
    /// Reads that have waited for a write of what they read to be in its register.
    pub held_reads: u64,
    /// Reads that registers alone have served.
    pub register_reads: u64,
    /// Reads that registers have served in part: the array gave the rest.
    pub partial_reads: u64,
    /// Reads that share a fetch that another read had begun.
    pub merged_reads: u64,
    /// Pages read from the arrays for reads.
    pub array_reads: u64,
    /// Of these, pages found in a log block.
    pub log_reads: u64,
    /// Old pages read because an evicted one was written in part.
    pub fill_reads: u64,
    /// Pages read by merges of log blocks.
    pub gc_reads: u64,
    /// Pages programmed because a register was needed.
    pub eviction_programs: u64,
    /// Pages programmed by merges of log blocks.
    pub gc_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Writes to a page that a register held.
    pub register_hits: u64,
    /// Writes to a page that no register held.
    pub register_misses: u64,
    /// Pages that had to leave their register.
    pub evictions: u64,
    /// Pages moved from a register of one plane to the data register of another.
    pub moves: u64,
    /// Evicted pages offered to the shared cache.
    pub parked: u64,
    /// Of these, refused by it and programmed after all.
    pub refused: u64,
    /// Merges of a log block that have ended.
    pub gc_runs: u64,
    /// How long they took, summed.
    pub gc_time: Time,
    /// When the first merge of the window began.
    pub gc_begun: Option<Time>,
    /// When the latest one ended.
    pub gc_ended: Option<Time>,
    /// Bytes from packages to controllers, commands apart.
    pub bytes_out: u64,
    /// Bytes from controllers to packages, commands apart.
    pub bytes_in: u64,
    /// Different pages read from the arrays for reads.
    pub pages_read: u64,
    /// Different pages programmed because a register was needed.
    pub pages_programmed: u64,
    /// Different pages that write commands were for.
    pub pages_written: u64,
    /// Write commands for each plane, channel first.
    pub plane_writes: Vec<u32>,
}

impl DirectStats {
    /// Pages read from the arrays, whatever for: as often the page tables of log blocks have been searched.
    pub fn senses(&self) -> u64 {
        self.array_reads + self.fill_reads + self.gc_reads
    }

    /// Bytes read from the arrays, whole pages.
    pub fn bytes_sensed(&self) -> u64 {
        self.senses() * PAGE
    }

    /// Pages programmed, whatever for.
    pub fn programs(&self) -> u64 {
        self.eviction_programs + self.gc_programs
    }

    /// How often a page that reads fetch from the arrays is fetched.
    pub fn reaccess(&self) -> f64 {
        ratio(self.array_reads, self.pages_read)
    }

    /// How often a page that evictions program is programmed.
    pub fn write_redundancy(&self) -> f64 {
        ratio(self.eviction_programs, self.pages_programmed)
    }

    /// Read commands that an array serves to a page that is read at all: [`DirectStats::reaccess`], had none been merged.
    pub fn reads_per_page(&self) -> f64 {
        ratio(self.reads - self.register_reads, self.pages_read)
    }

    /// Write commands to a page that is written at all.
    pub fn writes_per_page(&self) -> f64 {
        ratio(self.writes, self.pages_written)
    }
}

/// What flash as memory has done, as its planes and its counters know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectCounts {
    /// Planes.
    pub planes: u64,
    /// Of these, arrays that are at work: what they do may not be counted yet.
    pub at_work: u64,
    /// How long arrays have worked, or will have, picoseconds.
    pub busy_ps: u128,
}

fn ratio(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

/// How long resources have been busy since the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectBusy {
    /// Arrays of the planes.
    pub planes: Spread,
    /// I/O ports of the packages; with buses, the buses.
    pub ports: Spread,
    /// Links of the mesh; none with buses.
    pub links: Spread,
}

/// What registers hold that flash does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Registers.
    pub registers: u64,
    /// Lines written in them.
    pub lines: u64,
}

/// Which pages have been met: a bitmap that grows where it is used.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet {
    chunks: Vec<Option<Box<[u64; CHUNK]>>>,
    used: Vec<u32>,
}

/// Words of a piece of the bitmap: 4 KiB.
const CHUNK: usize = 512;

impl PageSet {
    pub(super) fn new(pages: u64) -> PageSet {
        let chunks = pages.div_ceil(64 * CHUNK as u64) as usize;
        PageSet { chunks: std::iter::repeat_with(|| None).take(chunks).collect(), used: Vec::new() }
    }

    /// Adds a page; whether it is new.
    #[inline]
    pub(super) fn add(&mut self, page: u64) -> bool {
        let (word, bit) = ((page / 64) as usize, 1u64 << (page % 64));
        let place = word / CHUNK;
        let chunk = self.chunks[place].get_or_insert_with(|| {
            self.used.push(place as u32);
            Box::new([0; CHUNK])
        });
        let word = &mut chunk[word % CHUNK];
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub(super) fn clear(&mut self) {
        for place in &self.used {
            if let Some(chunk) = &mut self.chunks[*place as usize] {
                chunk.fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_new_once() {
        let mut set = PageSet::new(1 << 20);
        let pages = [0u64, 63, 64, 1 << 15, (1 << 20) - 1];
        assert!(pages.iter().all(|p| set.add(*p)) && !pages.iter().any(|p| set.add(*p)));
        set.clear();
        assert!(pages.iter().all(|p| set.add(*p)));
    }
}
