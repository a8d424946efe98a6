//! A job: one stream of synthetic requests, with every number resolved against a device.

use engine::Time;
use proto::{Batches, IoOp};

use super::popularity::{Popularity, Zone};

/// Directions of a request that carries an address.
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
    /// All directions, in the order of fio's comma lists.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// Returns the operation that the direction issues.
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

/// Access pattern of a job.
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
    /// Returns true if requests of this direction occur.
    pub fn has(self, direction: Direction) -> bool {
        match self {
            Access::Read => direction == Direction::Read,
            Access::Write => direction == Direction::Write,
            Access::Trim => direction == Direction::Trim,
            Access::Mixed { .. } => direction != Direction::Trim,
            Access::TrimWrite => direction != Direction::Read,
        }
    }

    /// Returns true if it changes data by writing.
    pub fn writes(self) -> bool {
        self.has(Direction::Write)
    }
}

/// Order of blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Each request starts where the last of its direction ended, plus `gap` bytes (negative: backwards).
    Sequential {
        /// Bytes added between requests.
        gap: i64,
    },
    /// Random blocks.
    Random {
        /// Requests for each random block: 1 for a new block each time.
        run: u64,
        /// Place of the other requests of a run.
        follow: Follow,
        /// Percent of random draws; the others continue where the last request ended.
        percent: Each<u8>,
        /// Distribution of random blocks.
        choice: Choice,
    },
}

/// Place of a request after a random block in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follow {
    /// Blocks after it.
    Next,
    /// Block of the previous request again.
    Same,
}

/// Distribution of random blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Every block exactly once in a pass over the region, in random order.
    EachOnce,
    /// Uniform with replacement.
    Uniform,
    /// Skewed choice with replacement.
    Popular {
        /// Frequency by rank.
        popularity: Popularity,
        /// Place of the most popular block as a fraction of the region; random if not given.
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
    /// Multiples of `min` up to `max`, uniformly.
    Range {
        /// Smallest size, and unit.
        min: u64,
        /// Largest size.
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
    /// Returns the smallest size.
    pub fn min(&self) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { min, .. } => *min,
            Sizes::Split(shares) => shares.iter().map(|s| s.bytes).min().unwrap_or(0),
        }
    }

    /// Returns the largest size.
    pub fn max(&self) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { max, .. } => *max,
            Sizes::Split(shares) => shares.iter().map(|s| s.bytes).max().unwrap_or(0),
        }
    }
}

/// Limits of a job; the first one reached ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in all passes together: of writes if the job writes and does not read, of reads and writes if mixed.
    pub bytes: u64,
    /// Requests in all passes together; requests before the end of the ramp do not count.
    pub requests: Option<u64>,
    /// Bytes of one pass, all directions together. A pass also ends when no block is left.
    pub pass_bytes: u64,
    /// Minimum number of passes; at least one.
    pub passes: u64,
    /// True if passes continue after a pass that ran out of blocks, until `bytes` are done (`io_size=`).
    pub refill: bool,
    /// Run time after the ramp.
    pub runtime: Option<Time>,
    /// True to repeat passes until `runtime`; `bytes` and `requests` do not end the job.
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

/// Due times of requests of a rate-capped job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Evenly spaced: each at the time at which the rate would have carried all earlier requests.
    Linear,
    /// Poisson process with the same mean.
    Poisson,
}

/// Pauses between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Length of a pause, counted from the moment the queue is empty.
    pub time: Time,
    /// Requests between pauses; none if only `every` applies.
    pub requests: Option<u64>,
    /// True if `requests` counts completions instead of issues.
    pub on_completion: bool,
    /// Time between the end of a pause and the next pause.
    pub every: Option<Time>,
}

/// Choice of the next file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Each file in turn, round-robin.
    RoundRobin,
    /// Any file, drawn uniformly.
    Random,
    /// Current file until it is done.
    Sequential,
    /// Any file, drawn by rank, with 1024 ranks per file, as in fio.
    Skewed {
        /// Frequency of each rank.
        popularity: Popularity,
        /// Share of the files before that of rank 0; before the median for [`Popularity::Normal`].
        center: Option<f64>,
    },
}

/// Range of bytes on the device: a file, or the part of it that a job accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte on the device.
    pub start: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// The files of a job that has several.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// Region of each file that the job accesses, in the order of file numbers.
    pub regions: Vec<Region>,
    /// Choice of the next file.
    pub service: Service,
    /// Requests per file before the next file is chosen.
    pub each: u64,
    /// Number of files in use at a time.
    pub open: usize,
}

/// Flushes that a writing job issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flushes {
    /// Number of writes between flushes; zero for never.
    pub fsync: u64,
    /// As `fsync`: a device sees the same command.
    pub fdatasync: u64,
    /// True to flush at the end of each pass, when the queue is empty.
    pub at_end: bool,
    /// True if nothing else is issued until a flush completes, as in engines with a blocking fsync.
    pub blocking: bool,
}

/// One stream of requests: a clone of an fio job on one device. [`Generator`](super::Generator) draws its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name in the job file.
    pub name: String,
    /// Index among the `numjobs` clones, from zero.
    pub clone: u16,
    /// Flow number of its requests.
    pub flow: u16,
    /// Access pattern.
    pub access: Access,
    /// Order of blocks.
    pub order: Order,
    /// First byte of its region on the device; for several files, of the first.
    pub start: u64,
    /// Length of its region in bytes; for several files, of the smallest.
    pub bytes: u64,
    /// Files of the job, if it has several.
    pub files: Option<Files>,
    /// Request sizes.
    pub sizes: Each<Sizes>,
    /// True if `sizes` are for sequential, random instead of read, write (`bs_is_seq_rand=`).
    pub sizes_by_order: bool,
    /// Alignment of random requests in bytes, counted from `start`.
    pub align: Each<u64>,
    /// Maximum outstanding requests.
    pub depth: u32,
    /// Batches in which requests are submitted and taken, if not one by one.
    pub batches: Option<Batches>,
    /// Limits that end the job.
    pub limits: Limits,
    /// Time from its start that results exclude.
    pub ramp: Time,
    /// Shortest and longest delay before it starts, from the start of the workload.
    pub start_delay: (Time, Time),
    /// Seed of the job; if none, the run's seed.
    pub seed: Option<u64>,
    /// True if each pass repeats the first one draw by draw.
    pub repeat: bool,
    /// Rate caps.
    pub rate: Each<Option<Rate>>,
    /// Arrival process of rate-capped requests.
    pub arrival: Arrival,
    /// Pauses.
    pub think: Option<Think>,
    /// Flushes.
    pub flushes: Flushes,
    /// True if writes carry force unit access.
    pub fua: bool,
    /// Likely mistakes, for the result's warnings.
    pub warnings: Vec<String>,
}

impl Job {
    /// Returns the number of blocks at which a random request of this direction can start: every aligned place at
    /// which the smallest request fits.
    pub fn blocks(&self, direction: Direction) -> u64 {
        self.blocks_of(direction, self.bytes)
    }

    /// Returns the number of such blocks in a region of `bytes` bytes.
    pub(crate) fn blocks_of(&self, direction: Direction, bytes: u64) -> u64 {
        let (align, min) = (self.align[direction as usize].max(1), self.smallest(direction));
        bytes.saturating_sub(min.saturating_sub(align)) / align
    }

    /// Returns the bytes of its region, or of all its files together.
    pub fn all_bytes(&self) -> u64 {
        let of = |files: &Files| files.regions.iter().map(|region| region.bytes).sum();
        self.files.as_ref().map_or(self.bytes, of)
    }

    /// Returns the smallest request of this direction in random order.
    pub(crate) fn smallest(&self, direction: Direction) -> u64 {
        self.sizes[self.sizes_index(direction, true)].min()
    }

    /// Returns the index into `sizes` for a request.
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

    /// Returns the largest request that the job can issue.
    pub(crate) fn largest(&self) -> u64 {
        let used = |d: &Direction| self.access.has(*d);
        let index = |d: Direction| [self.sizes_index(d, true), self.sizes_index(d, false)];
        let sizes = Direction::ALL.into_iter().filter(used).flat_map(index);
        sizes.map(|i| self.sizes[i].max()).max().unwrap_or(0)
    }
}
