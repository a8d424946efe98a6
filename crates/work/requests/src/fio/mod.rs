//! fio's vocabulary: inline jobs and job files.
//!
//! `fio:rw=randread,bs=4k,iodepth=64,number_ios=1000000` or a `.fio` file. Every option of fio is one row of one table
//! ([`options`]): honoured; inert here, and listed in the result with the reason; or meaning-changing and unsupported,
//! an error. Anything else is an unknown option, and the error names the nearest. The oracle for semantics is fio's
//! source (`io_u.c`, `backend.c`, `parse.c`, `filesetup.c`), version 3.42, checked against fio 3.33.
//!
//! Where this reading departs from fio:
//! * An inline job goes over the whole drive, as with `filename=/dev/nvme0n1`, unless an option asks for files; its clones share the region
//!   unless `offset_increment` parts them. The jobs of a file have files of their own, as in fio: see [`Layout`].
//! * Without `ioengine` a job queues `iodepth` requests (fio falls back to psync, and so to depth 1).
//! * A request never reaches beyond its region; fio's fixed-size requests may, where the device goes on.
//! * Sizes that fio misreads in silence (`4kx`, `1.5m`) are errors; expressions and `include` too, and a variable (`${NAME}`) that is not set.
//! * Rates: see [`Generator`](crate::synth::Generator). Skewed choice: see [`Popularity`](crate::synth::Popularity) and
//!   [`Zipf`](crate::synth::Zipf).
//! * `randseed` makes a job independent of the run's seed. Without it the run's seed decides, `randrepeat=0` or not:
//!   a run never depends on the clock. `randrepeat=1` keeps its other meaning: each pass repeats the first.

#![allow(clippy::result_large_err, reason = "a diagnostic is made once and ends the reading")]

mod check;
mod distribution;
mod drives;
mod environment;
mod files;
mod floor;
mod fuzz;
mod guard;
mod honoured;
mod inert;
mod jobs;
mod layout;
mod parse;
mod queue;
mod resolve;
mod spec;
mod table;
mod unsupported;
mod value;
mod way;

pub use drives::Behind;
pub use files::FileSpec;
pub(crate) use floor::Floors;
pub use guard::Guards;
pub use jobs::{Group, InertOption, Jobs, Notes};
pub use layout::{LaidOut, Layout};
pub use parse::{parse_file, parse_inline, parse_text};
pub use spec::{Distribution, Engine, Given, Hint, JobSpec, Pattern, Rw, Scheduler};
pub use table::{Class, FioOption, option, options};
pub use value::Quantity;

#[doc(hidden)]
pub use fuzz::fuzz_one;
