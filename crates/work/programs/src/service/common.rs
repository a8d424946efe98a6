//! The parameters that all programs have.

use config::Diagnostic;
use config::units::Bytes;
use requests::synth::{Measured, Purpose, Stream};

use crate::program::{Key, Params};
use crate::service::served::DATA;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the address space; the default is that of AstriFlash's 16 cores (section V-A).
pub(crate) const SIZE: Key = Key {
    name: "size",
    what: "bytes of the whole address space, data and threads' memory",
    default: "256GiB",
};
/// Skew, one for all programs. The default is chosen: AstriFlash (section V-A) sets it so that a miss of the DRAM cache comes every
/// 5 to 25 us, and does not say to what. With 3 % cached, objects scattered, and each program's work, it gives such intervals;
/// `papers/astriflash/README.md` has the sweep.
pub(crate) const THETA: Key =
    Key { name: "theta", what: "skew of the Zipf distribution over the objects", default: "1.2" };
/// Measured popularity in place of Zipf's.
pub(crate) const POPULARITY: Key = Key {
    name: "popularity",
    what: "file with a measured popularity in place of Zipf's: of CacheLib's cachebench (JSON), or what was requested, a name a line",
    default: "",
};
/// Seed of all streams.
pub(crate) const SEED: Key = Key { name: "seed", what: "of everything that is drawn", default: "1" };
/// Where popular objects lie: most services know nothing of popularity when they allocate.
pub(crate) const PLACEMENT: Key = Key {
    name: "placement",
    what: "popular objects are scattered over all pages, or clustered: in order of their popularity",
    default: "scattered",
};
/// Work. Each program has its own default, chosen: TATP's is 10 us (section VI-C) at the 2 GHz of AstriFlash's cores and one
/// instruction a cycle, next to which the data's part is little; a micro-benchmark's is a quarter of that; a transaction over
/// many rows has more, TPC-C most: it is the most compute-bound (section VI-A). It lies before and behind the data, half each, but for
/// TPC-C's, which lies between them.
pub(crate) const fn work(default: &'static str) -> Key {
    let what = "instructions of a job besides its data: receiving, parsing, dispatch, reply";
    Key { name: WORK, what, default }
}
/// The name of [`work`].
const WORK: &str = "work";

/// The keys of a program: those of all, with its instructions of work, then its own.
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

/// Where popular objects lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// Anywhere.
    Scattered,
    /// In order of popularity.
    Clustered,
}

/// How often objects are asked for.
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

/// What all programs are told.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Common {
    /// Bytes for the program's data.
    pub(crate) data: u64,
    /// How often objects are asked for.
    pub(crate) skew: Skew,
    /// Seed.
    pub(crate) seed: u64,
    /// Where popular objects lie.
    pub(crate) placement: Placement,
    /// Instructions of a job besides its data.
    pub(crate) work: u32,
}

impl Common {
    /// Reads them; the data must have room for `least` bytes.
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

    /// A number of its own for each `purpose`, under the seed.
    pub(crate) fn salt(&self, purpose: u64) -> u64 {
        engine::mix(engine::mix(self.seed).wrapping_add(purpose))
    }

    /// What a job draws from: a function of the seed and its number.
    pub(crate) fn stream(&self, job: u64) -> Stream {
        Stream::new(engine::mix(job).wrapping_add(self.salt(0)), Purpose::Request)
    }
}
