//! fio's vocabulary: inline jobs and job files.
//!
//! `fio:rw=randread,bs=4k,iodepth=64,number_ios=1000000` or a `.fio` file. Every option of fio is one row of one table
//! ([`options`]): honoured; inert here, and listed in the result with the reason; or meaning-changing and unsupported,
//! an error. Anything else is an unknown option, and the error names the nearest. The oracle for semantics is fio's
//! source (`io_u.c`, `backend.c`, `parse.c`, `filesetup.c`), version 3.42, checked against fio 3.33.
//!
//! Differences from fio:
//! * An inline job covers the whole drive, as with `filename=/dev/nvme0n1`, unless an option asks for files; its
//!   clones share the region unless `offset_increment` separates them. The jobs of a job file have their own files,
//!   as in fio: see [`Layout`].
//! * Without `ioengine` a job queues `iodepth` requests (fio falls back to psync, and so to depth 1).
//! * A request never reaches beyond its region; fixed-size requests in fio may, if the device continues there.
//! * Sizes that fio silently misreads (`4kx`, `1.5m`) are errors, as are expressions, `include` and unset variables
//!   (`${NAME}`).
//! * Rates: see [`Generator`]. Skewed choice: see [`Popularity`](crate::synth::Popularity) and
//!   [`Zipf`](crate::synth::Zipf).
//! * `randseed` makes a job independent of the run's seed. Without it the run's seed decides, `randrepeat=0` or not:
//!   a run never depends on the clock. `randrepeat=1` keeps its other meaning: each pass repeats the first.

#![allow(clippy::result_large_err, reason = "a diagnostic is made once and ends the reading")]

mod distribution;
mod files;
mod floor;
mod honoured;
mod layout;
mod parse;
mod queue;
mod resolve;
mod spec;
mod table;
mod value;

pub use files::FileSpec;
pub(crate) use floor::Floors;
pub use layout::{LaidOut, Layout};
pub use parse::{parse_file, parse_inline, parse_text};
pub use spec::{
    Distribution, Engine, Given, Group, Hint, InertOption, JobSpec, Jobs, Notes, Pattern, Rw, Scheduler,
};
pub use table::{Class, FioOption, option, options};
pub use value::Quantity;

use crate::{
    inject::FlowStats,
    synth::{Access, Arrival, Direction, Each, Generator, Job, Order, Poll, Region},
};
use config::Diagnostic;
use engine::Time;
use proto::file::{Advice, Way};
use std::collections::VecDeque;

// The entry point of a fuzzer.

/// Number of requests drawn per job.
const DRAWN: usize = 200;

/// Reads `data` as an inline job or a job file, depending on the first byte, and draws from every job that fits a
/// device of 64 MiB. Panics if the reader or the generator breaks its contract.
pub fn fuzz_one(data: &[u8]) {
    const CAPACITY: u64 = 64 << 20;
    let Some((choice, content)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(content);
    let read = if choice & 1 == 0 { parse_inline(&text) } else { parse_text("fuzz", &text) };
    match read.and_then(|jobs| jobs.resolve(CAPACITY)) {
        Ok(groups) => {
            groups.into_iter().flat_map(|group| group.jobs).take(4).for_each(|job| draw(job, CAPACITY))
        }
        Err(fault) => assert!(!fault.what.is_empty()),
    }
}

/// Checks that every request lies in its job's region and that a job never waits forever.
fn draw(job: Job, capacity: u64) {
    let one = vec![Region { start: job.start, bytes: job.bytes }];
    let regions = job.files.as_ref().map_or(one, |files| files.regions.clone());
    assert!(regions.iter().all(|region| region.start + region.bytes <= capacity));
    let is_inside = |offset: u64, bytes: u64| {
        regions.iter().any(|of| of.start <= offset && offset + bytes <= of.start + of.bytes)
    };
    let mut generator = Generator::new(job, 1);
    generator.start(Time::ZERO, Time::ZERO);
    let mut now = Time::ZERO;
    let mut flying = VecDeque::new();
    for _ in 0..DRAWN {
        match generator.poll(now, flying.len() as u32) {
            Poll::Issue(request) => {
                assert!(request.at <= now);
                assert!(request.bytes == 0 || is_inside(request.offset, request.bytes));
                flying.push_back(request.op);
            }
            Poll::At(time) if flying.is_empty() => {
                assert!(time > now);
                now = time;
            }
            Poll::At(_) | Poll::Blocked => {
                let Some(op) = flying.pop_front() else { panic!("blocked with nothing in flight") };
                generator.completed(op);
            }
            Poll::Done => match flying.pop_front() {
                Some(op) => generator.completed(op),
                None => return,
            },
        }
    }
}

// Options that end a job in fio when the device is too slow. They do not steer a run here: the result reports which
// ones would have ended it.

/// Guards of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    /// Maximum latency of a request (`max_latency`).
    pub max_latency: Each<Option<Time>>,
    /// Minimum rate in bytes per second (`rate_min`); zero for none.
    pub rate_min: Each<u64>,
    /// Minimum rate in requests per second (`rate_iops_min`); zero for none.
    pub rate_iops_min: Each<u64>,
    /// Length of the cycles in which a rate is checked (`rate_cycle`).
    pub rate_cycle: Time,
}

/// Names of the directions in a result.
const KINDS: Each<&str> = ["read", "write", "trim"];

impl Guards {
    /// No guards.
    const NONE: Guards = Guards {
        max_latency: [None; 3],
        rate_min: [0; 3],
        rate_iops_min: [0; 3],
        rate_cycle: Time::from_ms(1000),
    };

    /// Returns true if a rate has a floor.
    fn has_floors(&self) -> bool {
        self.rate_min.iter().chain(&self.rate_iops_min).any(|&least| least > 0)
    }

    /// Returns the guards that would have ended the job, from the statistics of its flow and its rates by cycle.
    pub(crate) fn tripped(&self, flow: &FlowStats, floors: Option<&Floors>) -> Vec<String> {
        let mut said = Vec::new();
        for (at, of) in [&flow.read, &flow.write, &flow.trim].into_iter().enumerate() {
            let longest = Time::from_ps(of.latency.max().unwrap_or(0));
            if let Some(most) = self.max_latency[at].filter(|most| longest > *most) {
                said.push(format!("{ENDED}max_latency={most}: a {} took {longest}", KINDS[at]));
            }
        }
        said.extend(floors.into_iter().flat_map(Floors::missed));
        said.into_iter().map(|what| format!("job `{}`: {what}", flow.name)).collect()
    }
}

/// Prefix of the message about a guard at which fio ends the job.
const ENDED: &str = "fio would have ended it with an error: ";

impl JobSpec {
    /// Returns the guards of the job, if it has any.
    pub fn guards(&self) -> Option<Guards> {
        let any = Guards { rate_cycle: self.guards.rate_cycle, ..Guards::NONE } != self.guards;
        any.then_some(self.guards)
    }
}

// Lists of drives (`filename=/dev/nvme0n1:/dev/nvme1n1`): drives behind a stripe, each with its own addresses.
//
// fio treats the drives of a list as files, one request each in turn unless `file_service_type` says otherwise. The
// host has only the stripe, where a drive's addresses are every n-th chunk. A request that is longer than the rest of
// its chunk becomes one command per chunk, all of the same drive.

/// Drives behind a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// Number of drives.
    pub drives: u64,
    /// Chunk size of the stripe, in bytes.
    pub chunk: u64,
    /// Bytes of each drive that the stripe uses: whole chunks.
    pub bytes: u64,
}

impl Behind {
    /// Returns the stripe address of `address` (counted over the concatenated drives), and the bytes that follow it
    /// contiguously.
    pub fn place(&self, address: u64) -> (u64, u64) {
        let (drive, at) = (address / self.bytes, address % self.bytes);
        let (row, within) = (at / self.chunk, at % self.chunk);
        ((row * self.drives + drive) * self.chunk + within, self.chunk - within)
    }
}

impl JobSpec {
    /// Returns the drives that the job names, if it names several.
    pub fn drives(&self) -> Option<Vec<&str>> {
        let mut found: Vec<&str> = Vec::new();
        for name in self.files.names.iter().filter(|_| self.files.device().is_some()) {
            if !found.contains(&name.as_str()) {
                found.push(name);
            }
        }
        (found.len() > 1).then_some(found)
    }

    /// Builds the diagnostic for a list of drives that cannot be used.
    fn refuse_drives(&self, why: &str, help: &str) -> Diagnostic {
        let count = self.drives().map_or(0, |drives| drives.len());
        let what = format!("job `{}`: `filename` names {count} drives, but {why}", self.name);
        Diagnostic::new(what).at(self.place_of("filename")).help(help)
    }
}

// Paths of a job's requests to a file through the kernel of a host.

impl JobSpec {
    /// Returns true if requests go to a file of a host: buffered ones always, direct ones if its kernel is simulated.
    fn takes_a_file(&self, direct: bool) -> bool {
        match self.buffered {
            // Passthrough bypasses the page cache and the kernel.
            _ if self.engine == Some(Engine::Passthrough) => false,
            _ if self.engine == Some(Engine::Mapped) => true,
            Some(true) => true,
            Some(false) => direct,
            None => false,
        }
    }

    /// Returns true if requests pass through the page cache of a host.
    fn is_cached(&self) -> bool {
        self.buffered == Some(true) || self.engine == Some(Engine::Mapped)
    }

    /// Returns the advice that the kernel gets about reads (`fadvise_hint`): that of `rw`, unless the job sets its
    /// own.
    fn advice(&self) -> Advice {
        let by_pattern = if self.rw.random { Advice::Random } else { Advice::Sequential };
        match self.advice {
            None | Some(Hint::ByPattern) => by_pattern,
            Some(Hint::Nothing) => Advice::Normal,
            Some(Hint::Sequential) => Advice::Sequential,
            Some(Hint::Random) => Advice::Random,
        }
    }

    /// Returns the path of the requests. Without an `ioengine`, it is that of `libaio`.
    ///
    /// # Errors
    /// If the simulated kernel does not have the engine, or the engine refuses the job.
    fn way(&self) -> Result<Way, Diagnostic> {
        if self.buffered == Some(true) && self.engine != Some(Engine::Mapped) {
            return Ok(Way::Buffered);
        }
        match self.engine {
            Some(Engine::Mapped) => Ok(Way::Mapped),
            Some(Engine::Blocking) => Ok(Way::Direct),
            None | Some(Engine::Libaio) => Ok(Way::Aio),
            Some(Engine::IoUring) if !self.hipri => Ok(Way::Uring),
            Some(Engine::IoUring) => {
                if self.fsync > 0 || self.fdatasync > 0 || self.end_fsync {
                    // `io_fsync_prep`.
                    let what = format!("job `{}`: io_uring with hipri does not support fsync", self.name);
                    return Err(Diagnostic::new(what)
                        .at(self.place_of("hipri"))
                        .help("leave out hipri, or make writes durable with sync=dsync"));
                }
                Ok(Way::Polled)
            }
            Some(Engine::OtherQueued | Engine::OtherQueuedFlush | Engine::Passthrough) => {
                let what = format!("job `{}`: the host's kernel does not have this ioengine", self.name);
                Err(Diagnostic::new(what).at(self.place_of("ioengine")).help(
                    "use libaio, io_uring or a blocking engine; without `direct`, any engine goes straight to the drive",
                ))
            }
        }
    }

    /// Warns that `ioscheduler` has no effect on requests that bypass the block layer.
    fn unscheduled(&self) -> Option<String> {
        let why = "requests go straight to the drive and bypass the host's block layer; direct=0 goes through it, as does direct=1 on a host with a \
                   kernel (`host.linux`)";
        self.scheduler.map(|_| format!("{}: `ioscheduler` has no effect here: {why}", self.name))
    }

    /// Returns why `hipri` does not do what is likely intended.
    fn polling(&self, poll_queues: u16) -> Option<String> {
        let why = match (self.buffered, self.engine) {
            (Some(true), _) | (_, Some(Engine::Mapped)) => {
                "requests through the page cache are not polled, as in fio"
            }
            (None, _) => "without direct=1, requests go straight to the drive",
            (Some(false), Some(Engine::IoUring)) if poll_queues > 0 => return None,
            (Some(false), Some(Engine::IoUring)) => {
                "the drive has no polled queue (host.linux.driver.poll_queues): the job polls on its core, but completions arrive by \
                 interrupt"
            }
            (Some(false), _) => {
                "Linux polls only for io_uring: not for requests that their thread waits for (since 5.19), nor for libaio"
            }
        };
        Some(format!("job `{}`: hipri: {why}", self.name))
    }
}

// Checks of options in combination: contradictions and likely mistakes.

impl JobSpec {
    /// Refuses options that exclude each other.
    pub(crate) fn contradictions(&self) -> Result<(), Diagnostic> {
        let error = |what: &str, option: &str| {
            Err(Diagnostic::new(format!("job `{}`: {what}", self.name)).at(self.place_of(option)))
        };
        let any = |each: &Each<u64>| each.iter().any(|&n| n > 0);
        if any(&self.rate) && any(&self.rate_iops) {
            return error("rate and rate_iops exclude each other", "rate_iops");
        }
        if self.time_based && self.runtime.is_none() {
            return error("time_based needs a runtime", "time_based");
        }
        if self.bsrange.iter().any(Option::is_some) && self.bssplit.iter().any(Option::is_some) {
            return error("bsrange and bssplit exclude each other", "bssplit");
        }
        Ok(())
    }

    /// Returns the options that have no effect in combination with others, with the reason.
    pub(crate) fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        let mut found = Vec::new();
        let mut when = |condition: bool, options: &[&'static str], why: &'static str| {
            if condition {
                found.extend(options.iter().map(|option| (*option, why)));
            }
        };
        let random_only = ["norandommap", "random_distribution", "percentage_random", "ba", "rw_sequencer"];
        when(!self.rw.random, &random_only, "rw is sequential");
        when(self.rw.pattern != Pattern::Mixed, &["rwmixread", "rwmixwrite"], "rw is not mixed");
        let writes = matches!(self.rw.pattern, Pattern::Write | Pattern::Mixed | Pattern::TrimWrite);
        when(!writes, &["fsync", "fdatasync", "end_fsync", "fsync_on_close", "sync"], "nothing is written");
        let thinking = ["thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime"];
        when(self.thinktime == Time::ZERO, &thinking, "thinktime is not given");
        let batches =
            ["iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low"];
        let mapped = self.engine == Some(Engine::Mapped);
        let blocking = self.engine == Some(Engine::Blocking) || mapped;
        when(blocking, &batches, "a blocking ioengine issues one request at a time");
        let cached = !blocking && self.buffered == Some(true);
        when(cached, &batches, "the kernel serves buffered requests as they are submitted");
        when(mapped, &["sync"], "a store to a mapping is durable only after a flush: use fsync or end_fsync");
        when(!self.is_cached(), &["fadvise_hint"], "requests do not pass through a page cache");
        let bounds = ["number_ios", "io_size", "loops"];
        when(self.time_based, &bounds, "a time_based job ends by runtime alone, as in fio");
        let capped = self.rate.iter().chain(&self.rate_iops).any(|&n| n > 0);
        when(!capped && self.arrival == Arrival::Poisson, &["rate_process"], "no rate is given");
        when(self.randseed.is_some(), &["randrepeat"], "randseed overrides it, as in fio");
        when(self.rw.modifier.is_none() && self.rw.random, &["rw_sequencer"], "rw has no :N");
        let sized = self.bssplit.iter().all(Option::is_some) || self.bsrange.iter().all(Option::is_some);
        when(sized, &["bs"], "bssplit or bsrange is given");
        found
    }
}

/// Adds warnings of likely mistakes, now that the device is known.
fn warn(spec: &JobSpec, job: &mut Job) {
    let limits = job.limits;
    if limits.time_based {
        return;
    }
    if let Some(wanted) = limits.requests {
        let used = Direction::ALL.into_iter().filter(|&d| job.access.has(d));
        let least = used.map(|d| job.sizes[d as usize].min()).min().unwrap_or(1).max(1);
        let pairs = if job.access == Access::TrimWrite { 2 } else { 1 };
        let possible = (limits.bytes / least).saturating_mul(pairs);
        if possible < wanted {
            job.warnings.push(format!(
                "job `{}`: number_ios is {wanted}, but the job ends after {} bytes, at most {possible} requests; \
                 io_size, loops or time_based extend it",
                spec.name, limits.bytes
            ));
        }
    }
    let random = matches!(job.order, Order::Random { .. });
    if job.repeat && random && (limits.passes > 1 || limits.bytes > limits.pass_bytes) {
        let effect = match job.access.writes() {
            true => {
                ", so blocks are invalidated in the order in which they were written and write amplification stays near 1"
            }
            false => "",
        };
        job.warnings.push(format!(
            "job `{}`: each pass repeats the block order of the first, as in fio{effect}; randrepeat=0 draws a new order",
            spec.name
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunk `c` of a stripe of four is chunk `c / 4` of drive `c % 4`.
    #[test]
    fn addresses_of_a_drive_are_every_fourth_chunk() {
        let behind = Behind { drives: 4, chunk: 64, bytes: 640 };
        assert_eq!(behind.place(0), (0, 64));
        assert_eq!(behind.place(70), (4 * 64 + 6, 58));
        assert_eq!(behind.place(640), (64, 64));
        assert_eq!(behind.place(3 * 640 + 639), ((9 * 4 + 3) * 64 + 63, 1));
        let mut all: Vec<u64> = (0..4 * 640).map(|address| behind.place(address).0).collect();
        all.sort_unstable();
        assert_eq!(all, (0..4 * 640).collect::<Vec<u64>>());
    }
}
