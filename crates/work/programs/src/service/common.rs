//! Parameters common to all programs, objects that jobs access, and requests to a map.

use config::Diagnostic;
use config::units::Bytes;
use requests::synth::{Measured, Permutation, Purpose, Stream, Zipf};

use crate::program::{Key, Params};
use crate::service::jobs::DATA;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the address space; the default is that of AstriFlash's 16 cores (section V-A).
pub(crate) const SIZE: Key = Key {
    name: "size",
    what: "bytes of the whole address space, data and threads' memory",
    default: "256GiB",
};
/// Skew, common to all programs. The default is chosen: AstriFlash (section V-A) sets it so that the DRAM cache
/// misses every 5 to 25 us, without giving the value. With 3 % cached, scattered objects, and each program's work, it
/// gives such intervals; `papers/astriflash/README.md` has the sweep.
pub(crate) const THETA: Key =
    Key { name: "theta", what: "skew of the Zipf distribution over the objects", default: "1.2" };
/// Measured popularity instead of Zipf's.
pub(crate) const POPULARITY: Key = Key {
    name: "popularity",
    what: "file with a measured popularity, instead of Zipf's: from CacheLib's cachebench (JSON), or requested names, one per line",
    default: "",
};
/// Seed of all streams.
pub(crate) const SEED: Key = Key { name: "seed", what: "seed of all random draws", default: "1" };
/// Placement of popular objects: most services know nothing of popularity when they allocate.
pub(crate) const PLACEMENT: Key = Key {
    name: "placement",
    what: "popular objects are scattered over all pages, or clustered: in order of their popularity",
    default: "scattered",
};
/// Work per job. Each program has its own chosen default: TATP's is 10 us (section VI-C) at the 2 GHz of AstriFlash's
/// cores and one instruction per cycle, which dominates the data accesses. A micro-benchmark's is a quarter of that;
/// a transaction over many rows has more, TPC-C most: it is the most compute-bound (section VI-A). Half of it is
/// before and half after the data accesses, except in TPC-C, where it is between them.
pub(crate) const fn work(default: &'static str) -> Key {
    let what = "instructions of a job besides those for its data: receiving, parsing, dispatch, reply";
    Key { name: WORK, what, default }
}
/// Name of [`work`].
const WORK: &str = "work";

/// Keys of a program: the common ones, with its instructions of work, then its own.
macro_rules! keys {
    ($work:literal $(, $key:expr)* $(,)?) => {{
        use crate::service::common::{PLACEMENT, POPULARITY, SEED, SIZE, THETA, work};
        &[SIZE, THETA, POPULARITY, SEED, PLACEMENT, work($work) $(, $key)*]
    }};
}
pub(crate) use keys;

/// The largest address space: ranks and addresses are exact in double precision far beyond it.
const LARGEST: u64 = 1 << 46;

/// The steepest skew: beyond it more than nine of ten requests are for one object.
const STEEPEST: f64 = 4.0;

/// Placement of popular objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// Anywhere.
    Scattered,
    /// In order of popularity.
    Clustered,
}

/// Popularity of objects.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Skew {
    /// Zipf's law with this exponent.
    Zipf(f64),
    /// As measured.
    Measured(Arc<Measured>),
}

impl Skew {
    fn read(params: &Params) -> Result<Skew, Diagnostic> {
        if let Some(file) = params.text(POPULARITY.name) {
            if params.is_given(THETA.name) {
                let mut both = params.refused(THETA.name, Vec::new());
                both.what =
                    "a measured popularity has no skew: `theta` and `popularity` exclude each other".into();
                return Err(both);
            }
            return Ok(Skew::Measured(Arc::new(Measured::read(Path::new(file))?)));
        }
        let theta = params.real(THETA.name, 0.0..=STEEPEST)?;
        if theta == 0.0 {
            let allowed = format!("a number above 0, up to {}", STEEPEST);
            return Err(params.refused(THETA.name, vec![allowed]));
        }
        Ok(Skew::Zipf(theta))
    }
}

/// Parameters common to all programs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Common {
    /// Bytes for the program's data.
    pub(crate) data: u64,
    /// Popularity of objects.
    pub(crate) skew: Skew,
    /// Seed.
    pub(crate) seed: u64,
    /// Placement of popular objects.
    pub(crate) placement: Placement,
    /// Instructions of a job besides its data accesses.
    pub(crate) work: u32,
}

impl Common {
    /// Reads the parameters; the data must have room for `least` bytes.
    pub(crate) fn read(params: &Params, least: u64) -> Result<Common, Diagnostic> {
        let text = params.text(SIZE.name).unwrap_or_default();
        let least = least + DATA;
        let size = text.parse::<Bytes>().ok().map(Bytes::get).filter(|size| (least..=LARGEST).contains(size));
        let allowed = || format!("{} to {}", Bytes::new(least), Bytes::new(LARGEST));
        let size = size.ok_or_else(|| params.refused(SIZE.name, vec![allowed()]))?;
        let placements = [("scattered", Placement::Scattered), ("clustered", Placement::Clustered)];
        Ok(Common {
            data: size - DATA,
            skew: Skew::read(params)?,
            seed: params.integer(SEED.name, 0..=u64::MAX)?,
            placement: params.word(PLACEMENT.name, &placements)?,
            work: params.integer(WORK, 0..=100_000_000)? as u32,
        })
    }

    /// Returns a distinct number for each `purpose`, under the seed.
    pub(crate) fn salt(&self, purpose: u64) -> u64 {
        engine::mix(engine::mix(self.seed).wrapping_add(purpose))
    }

    /// Returns the random stream of a job: a function of the seed and its number.
    pub(crate) fn stream(&self, job: u64) -> Stream {
        Stream::new(engine::mix(job).wrapping_add(self.salt(0)), Purpose::Request)
    }
}

// Objects that jobs access, and their places.

/// Number of draws for an object that is not taken yet.
const DRAWS: u32 = 64;

/// Distribution of ranks.
enum Ranks {
    Zipf(Zipf),
    Measured(Arc<Measured>),
}

/// Objects `0..n` with their popularity, independent of their numbers, and their slots `0..n` in memory.
pub(crate) struct Objects {
    ranks: Ranks,
    /// From rank to object.
    by_rank: Permutation,
    /// From object to slot; `None` if the slot is the rank.
    scatter: Option<Permutation>,
}

impl Objects {
    /// Creates `n` objects, at least one.
    pub(crate) fn new(n: u64, common: &Common) -> Objects {
        let scatter = (common.placement == Placement::Scattered).then(|| Permutation::new(n, common.salt(2)));
        let ranks = match &common.skew {
            Skew::Zipf(theta) => Ranks::Zipf(Zipf::new(n, *theta)),
            Skew::Measured(measured) => Ranks::Measured(Arc::clone(measured)),
        };
        Objects { ranks, by_rank: Permutation::new(n, common.salt(1)), scatter }
    }

    fn rank(&self, stream: &mut Stream) -> u64 {
        match &self.ranks {
            Ranks::Zipf(zipf) => zipf.rank(|| stream.unit()),
            Ranks::Measured(measured) => measured.rank(self.len(), stream.unit()),
        }
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> u64 {
        self.by_rank.len()
    }

    /// Draws an object for a job.
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        self.ranked(self.rank(stream))
    }

    /// Draws an object for a job other than those in `taken`, which are fewer than all objects. A steep skew may need
    /// many draws: after [`DRAWS`] draws, the next rank that is not taken is used.
    pub(crate) fn draw_other(&self, taken: &[u64], stream: &mut Stream) -> u64 {
        let mut rank = 0;
        for _ in 0..DRAWS {
            rank = self.rank(stream);
            if !taken.contains(&self.ranked(rank)) {
                return self.ranked(rank);
            }
        }
        while taken.contains(&self.ranked(rank)) {
            rank = (rank + 1) % self.len();
        }
        self.ranked(rank)
    }

    /// Returns the object of a rank; rank 0 is the most popular.
    pub(crate) fn ranked(&self, rank: u64) -> u64 {
        self.by_rank.at(rank)
    }

    /// Returns the slot of an object.
    pub(crate) fn slot(&self, object: u64) -> u64 {
        match &self.scatter {
            Some(scatter) => scatter.at(object),
            None => self.by_rank.place_of(object),
        }
    }
}

// Requests to a map, and its initial keys.

/// Group size of keys: keys `0..n` may be requested, and the last of each [`TOGETHER`] is absent at first, so that
/// inserts find room and the number of keys stays steady.
const TOGETHER: u64 = 16;

/// Returns true if a key is present at first.
pub(crate) fn loaded(key: u64) -> bool {
    key % TOGETHER != TOGETHER - 1
}

/// Returns how many of the keys `0..n` are present at first.
pub(crate) fn loaded_below(n: u64) -> u64 {
    n - n / TOGETHER
}

/// Returns key number `q` of those present at first.
pub(crate) fn loaded_key(q: u64) -> u64 {
    q / (TOGETHER - 1) * TOGETHER + q % (TOGETHER - 1)
}

/// Request of a job to a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// Reads the value of a key.
    Look,
    /// Sets a key, whether or not it is present.
    Insert,
    /// Removes a key.
    Delete,
}

/// Share of lookups. AstriFlash (section V-A) says only "limited write traffic" about its mix.
pub(crate) const LOOKUPS: Key = Key {
    name: "lookups",
    what: "percent of jobs that look a key up; half of the others insert, half delete",
    default: "90",
};

/// Draws the request of a job.
pub(crate) fn want(lookups: u64, stream: &mut Stream) -> Want {
    if stream.below(100) < lookups {
        Want::Look
    } else if stream.below(2) == 0 {
        Want::Insert
    } else {
        Want::Delete
    }
}
