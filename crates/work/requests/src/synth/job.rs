//! A job: what one stream of synthetic requests is, with every number settled against a device.

use engine::Time;
use proto::{Batches, IoOp};

use super::popularity::{Popularity, Zone};

/// The three directions of a request that carries an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Reads.
    Read = 0,
    /// Writes.
    Write = 1,
    /// Trims.
    Trim = 2,
}

impl Direction {
    /// All of them, in the order of fio's comma lists.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// The operation it issues.
    #[inline]
    pub fn op(self) -> IoOp {
        match self {
            Direction::Read => IoOp::Read,
            Direction::Write => IoOp::Write,
            Direction::Trim => IoOp::Trim,
        }
    }
}

/// One value for each of read, write and trim.
pub type Each<T> = [T; 3];

/// What a job does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Reads and writes; each request is a read with this probability, in percent.
    Mixed {
        /// Share of reads, 0 to 100.
        read_percent: u8,
    },
    /// Trims a block, then writes it.
    TrimWrite,
}

impl Access {
    /// Whether requests of this direction occur.
    pub fn has(self, direction: Direction) -> bool {
        match self {
            Access::Read => direction == Direction::Read,
            Access::Write => direction == Direction::Write,
            Access::Trim => direction == Direction::Trim,
            Access::Mixed { .. } => direction != Direction::Trim,
            Access::TrimWrite => direction != Direction::Read,
        }
    }

    /// Whether it changes data by writing.
    pub fn writes(self) -> bool {
        self.has(Direction::Write)
    }
}

/// In which order blocks come.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Each request starts where the last of its direction ended, plus `gap` bytes (negative: backwards).
    Sequential {
        /// Bytes added between requests.
        gap: i64,
    },
    /// Random blocks.
    Random {
        /// Requests for each random block: 1 is a new block each time.
        run: u64,
        /// What the other requests of a run do.
        follow: Follow,
        /// Percent of the draws that are random; the others continue where the last request ended.
        percent: Each<u8>,
        /// How blocks are drawn.
        choice: Choice,
    },
}

/// What follows a random block in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follow {
    /// The blocks after it.
    Next,
    /// The same block again.
    Same,
}

/// How random blocks are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Every block exactly once in a pass over the region, in random order.
    EachOnce,
    /// Uniform with replacement.
    Uniform,
    /// Some blocks more often than others, with replacement.
    Popular {
        /// Frequency by rank.
        popularity: Popularity,
        /// Where the most popular block lies, as a fraction of the region; anywhere if not given.
        center: Option<f64>,
    },
    /// Uniform within zones.
    Zoned(Each<Vec<Zone>>),
}

/// Request sizes of one direction, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One size.
    Fixed(u64),
    /// Multiples of `min` up to `max`, evenly.
    Range {
        /// Smallest, and unit.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Sizes with weights; none of the weights is zero.
    Split(Vec<Share>),
}

/// One size of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Size.
    pub bytes: u64,
    /// Weight; percent in fio.
    pub weight: u32,
}

impl Sizes {
    /// The smallest size.
    pub fn min(&self) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { min, .. } => *min,
            Sizes::Split(shares) => shares.iter().map(|s| s.bytes).min().unwrap_or(0),
        }
    }

    /// The largest size.
    pub fn max(&self) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { max, .. } => *max,
            Sizes::Split(shares) => shares.iter().map(|s| s.bytes).max().unwrap_or(0),
        }
    }
}

/// When a job ends. Whatever comes first ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in all passes together: of writes if the job writes and does not read, of reads and writes if mixed.
    pub bytes: u64,
    /// Requests in all passes together; those before the end of the ramp do not count.
    pub requests: Option<u64>,
    /// Bytes of one pass, all directions together. A pass also ends when no block is left.
    pub pass_bytes: u64,
    /// Passes that are made in any case; at least one.
    pub passes: u64,
    /// Whether passes go on after a pass that ran out of blocks, until `bytes` are done (`io_size=`).
    pub refill: bool,
    /// Time after the ramp.
    pub runtime: Option<Time>,
    /// Pass after pass until `runtime`; `bytes` and `requests` do not end the job.
    pub time_based: bool,
}

/// A rate cap of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bytes per second.
    Bytes(u64),
    /// Requests per second.
    Requests(u64),
}

/// When requests of a rate-capped job are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Evenly: each at the time at which the rate would have carried what came before.
    Linear,
    /// A Poisson process of the same mean.
    Poisson,
}

/// Pauses between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Length of a pause, counted from the moment the queue is empty.
    pub time: Time,
    /// Requests between pauses; none if only `every` counts.
    pub requests: Option<u64>,
    /// Whether `requests` counts completions (else issues).
    pub on_completion: bool,
    /// Time between the end of a pause and the next.
    pub every: Option<Time>,
}

/// Which file of several comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// One after another, in turn.
    RoundRobin,
    /// Any, drawn evenly.
    Random,
    /// The same until it is done.
    Sequential,
    /// Any, drawn by rank, with 1024 ranks a file, as in fio.
    Skewed {
        /// How often each rank is drawn.
        popularity: Popularity,
        /// Share of the files before that of rank 0; before the median for [`Popularity::Normal`].
        center: Option<f64>,
    },
}

/// A stretch of the device: a file, or the part of it that a job goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte on the device.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The files of a job that has several.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// The job's part of each, in the order of their numbers.
    pub regions: Vec<Region>,
    /// Which comes next.
    pub service: Service,
    /// Requests of one before the next comes.
    pub each: u64,
    /// How many are in service at a time.
    pub open: usize,
}

/// Flushes that a writing job issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flushes {
    /// After each so many writes; zero is never.
    pub fsync: u64,
    /// As `fsync`: a device sees the same command.
    pub fdatasync: u64,
    /// At the end of each pass, when the queue is empty.
    pub at_end: bool,
    /// Whether nothing else is issued until a flush completes, as in engines whose fsync is a blocking call.
    pub blocking: bool,
}

/// One stream of requests: a clone of an fio job on one device. [`Generator`](super::Generator) draws its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name in the job file.
    pub name: String,
    /// Which of the `numjobs` clones it is, from zero.
    pub clone: u16,
    /// Flow number: marks its requests.
    pub flow: u16,
    /// What it does.
    pub access: Access,
    /// In which order.
    pub order: Order,
    /// First byte of its region of the device; of several files, of the first.
    pub start: u64,
    /// Bytes of its region; of several files, of the smallest.
    pub bytes: u64,
    /// Its files, if it has several.
    pub files: Option<Files>,
    /// Request sizes.
    pub sizes: Each<Sizes>,
    /// `sizes` are read as sequential, random instead of read, write (`bs_is_seq_rand=`).
    pub sizes_by_order: bool,
    /// Random requests start at multiples of this, counted from `start`.
    pub align: Each<u64>,
    /// Requests outstanding at most.
    pub depth: u32,
    /// The batches in which they are submitted and taken, if not one by one.
    pub batches: Option<Batches>,
    /// When it ends.
    pub limits: Limits,
    /// Time from its start that results should not count.
    pub ramp: Time,
    /// Shortest and longest delay before it starts, from the start of the workload.
    pub start_delay: (Time, Time),
    /// Its own seed; if none, the run's seed is its seed.
    pub seed: Option<u64>,
    /// Whether each pass repeats the first one draw by draw.
    pub repeat: bool,
    /// Rate caps.
    pub rate: Each<Option<Rate>>,
    /// How rate-capped requests arrive.
    pub arrival: Arrival,
    /// Pauses.
    pub think: Option<Think>,
    /// Flushes.
    pub flushes: Flushes,
    /// Whether writes carry force unit access.
    pub fua: bool,
    /// What is likely not meant, for the result's warnings.
    pub warnings: Vec<String>,
}

impl Job {
    /// Blocks that a random request of this direction can start at: every aligned place from which the smallest
    /// request fits.
    pub fn blocks(&self, direction: Direction) -> u64 {
        self.blocks_of(direction, self.bytes)
    }

    /// The same of a region of so many bytes.
    pub(crate) fn blocks_of(&self, direction: Direction, bytes: u64) -> u64 {
        let (align, min) = (self.align[direction as usize].max(1), self.smallest(direction));
        bytes.saturating_sub(min.saturating_sub(align)) / align
    }

    /// Bytes of its region, of several files together.
    pub fn all_bytes(&self) -> u64 {
        let of = |files: &Files| files.regions.iter().map(|region| region.bytes).sum();
        self.files.as_ref().map_or(self.bytes, of)
    }

    /// Smallest request of this direction in random order.
    pub(crate) fn smallest(&self, direction: Direction) -> u64 {
        self.sizes[self.sizes_index(direction, true)].min()
    }

    /// Which of `sizes` a request takes.
    #[inline]
    pub(crate) fn sizes_index(&self, direction: Direction, random: bool) -> usize {
        if !self.sizes_by_order {
            direction as usize
        } else if random {
            Direction::Write as usize
        } else {
            Direction::Read as usize
        }
    }

    /// The largest request it can issue.
    pub(crate) fn largest(&self) -> u64 {
        let used = |d: &Direction| self.access.has(*d);
        let index = |d: Direction| [self.sizes_index(d, true), self.sizes_index(d, false)];
        let sizes = Direction::ALL.into_iter().filter(used).flat_map(index);
        sizes.map(|i| self.sizes[i].max()).max().unwrap_or(0)
    }
}
