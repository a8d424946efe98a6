//! Jobs as written in the text, before a device is known.

use config::{Diagnostic, Place};
use engine::Time;

use super::files::FileSpec;
use super::value::Quantity;
use super::{Guards, layout::Layout};
use crate::synth::{Arrival, Each, Follow, Job, Popularity, Share, Think};
use proto::file::{Advice, Way};
use serde::Serialize;

/// One job section with every honoured option, defaults filled in. [`resolve`](Self::resolve) settles it against a
/// device.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Name of the section.
    pub name: String,
    /// Options that shape the requests, in the order of the text; the last of equal names wins.
    pub given: Vec<Given>,
    /// Value of `k`: 1024 or 1000.
    pub kb_base: u64,
    /// Options `filename`, `nrfiles` and related ones.
    pub files: FileSpec,
    /// `rw`.
    pub rw: Rw,
    /// `rw_sequencer`.
    pub follow: Follow,
    /// `bs`.
    pub bs: Each<u64>,
    /// `bsrange`.
    pub bsrange: Each<Option<(u64, u64)>>,
    /// `bssplit`.
    pub bssplit: Each<Option<Vec<Share>>>,
    /// `bs_is_seq_rand`.
    pub bs_is_seq_rand: bool,
    /// `blockalign`.
    pub blockalign: Each<Option<u64>>,
    /// `ioengine`, if given.
    pub engine: Option<Engine>,
    /// True if requests pass through the page cache of a host (`direct`, `buffered`), if given.
    pub buffered: Option<bool>,
    /// Value of `fadvise_hint`, if given.
    pub advice: Option<Hint>,
    /// Value of `hipri`: poll for completions, if the engine supports it.
    pub hipri: bool,
    /// `iodepth`.
    pub iodepth: u32,
    /// Value of `iodepth_batch_submit`; zero means `iodepth`.
    pub batch_submit: u32,
    /// `iodepth_batch_complete_min`.
    pub batch_complete_min: u32,
    /// Value of `iodepth_batch_complete_max`; at least `batch_complete_min`.
    pub batch_complete_max: u32,
    /// Value of `iodepth_low`; zero means `iodepth`.
    pub iodepth_low: u32,
    /// Value of `ioscheduler`, if given.
    pub scheduler: Option<Scheduler>,
    /// `numjobs`.
    pub numjobs: u16,
    /// `size`.
    pub size: Option<Quantity>,
    /// `io_size`.
    pub io_size: Option<Quantity>,
    /// `offset`.
    pub offset: Quantity,
    /// `offset_increment`.
    pub offset_increment: Quantity,
    /// `offset_align`.
    pub offset_align: Option<u64>,
    /// `number_ios`.
    pub number_ios: Option<u64>,
    /// `loops`.
    pub loops: u64,
    /// `runtime`.
    pub runtime: Option<Time>,
    /// `time_based`.
    pub time_based: bool,
    /// `ramp_time`.
    pub ramp_time: Time,
    /// Range of `startdelay`: shortest and longest.
    pub start_delay: (Time, Time),
    /// `stonewall`.
    pub stonewall: bool,
    /// `rwmixread`.
    pub rwmixread: u8,
    /// `percentage_random`.
    pub percentage_random: Each<u8>,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// `norandommap`.
    pub norandommap: bool,
    /// `randseed`.
    pub randseed: Option<u64>,
    /// `randrepeat`.
    pub randrepeat: bool,
    /// Value of `rate`, in bytes per second; zero for none.
    pub rate: Each<u64>,
    /// Value of `rate_iops`; zero for none.
    pub rate_iops: Each<u64>,
    /// `rate_process`.
    pub arrival: Arrival,
    /// `thinktime`.
    pub thinktime: Time,
    /// `thinktime_blocks`, if given.
    pub thinktime_blocks: Option<u64>,
    /// True if `thinktime_blocks_type` counts completions instead of issues.
    pub thinktime_on_completion: bool,
    /// `thinktime_iotime`.
    pub thinktime_iotime: Time,
    /// `fsync`.
    pub fsync: u64,
    /// `fdatasync`.
    pub fdatasync: u64,
    /// `end_fsync`.
    pub end_fsync: bool,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,
    /// Value of `sync`: writes carry force unit access.
    pub sync: bool,
    /// Guards `max_latency`, `rate_min` and `rate_iops_min`.
    pub guards: Guards,
}

/// An option as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Name in the table.
    pub option: &'static str,
    /// Value; empty for a bare flag.
    pub value: String,
    /// Place in the text.
    pub place: Place,
}

/// `rw=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    /// Directions.
    pub pattern: Pattern,
    /// True if blocks are random.
    pub random: bool,
    /// Number after the colon: requests per random block, or bytes between sequential ones.
    pub modifier: Option<i64>,
}

/// Directions of `rw=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `read`, `randread`.
    Read,
    /// `write`, `randwrite`.
    Write,
    /// `trim`, `randtrim`.
    Trim,
    /// `rw`, `randrw`.
    Mixed,
    /// `trimwrite`, `randtrimwrite`.
    TrimWrite,
}

/// How an engine issues requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// One blocking call at a time: `iodepth` is always 1.
    Blocking,
    /// mmap: loads and stores of a mapping, one request at a time.
    Mapped,
    /// libaio: `iodepth` requests in flight, but fsync is a blocking call.
    Libaio,
    /// io_uring: `iodepth` requests in flight, flushes among them.
    IoUring,
    /// As libaio, for other kernels or libraries (windowsaio, solarisaio).
    OtherQueued,
    /// As io_uring (posixaio).
    OtherQueuedFlush,
    /// As io_uring, but bypassing file systems and the page cache (io_uring_cmd, SPDK).
    Passthrough,
}

/// Values of `fadvise_hint=`: advice to the kernel about upcoming reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// `0`: no advice.
    Nothing,
    /// `1`: as `rw` says.
    ByPattern,
    /// `sequential`.
    Sequential,
    /// `random`.
    Random,
}

/// Values of `ioscheduler=`: schedulers of a host's block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduler {
    /// `none`.
    None,
    /// `mq-deadline`.
    MqDeadline,
    /// `kyber`.
    Kyber,
}

/// Values of `random_distribution=`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform distribution.
    Random,
    /// Distribution by rank.
    Popular {
        /// Frequency by rank.
        popularity: Popularity,
        /// Place of the most popular block, as a fraction.
        center: Option<f64>,
    },
    /// `zoned`: percent of the requests and percent of the region.
    Zoned(Each<Vec<(u8, u8)>>),
    /// `zoned_abs`: percent of the requests and bytes.
    ZonedAbs(Each<Vec<(u8, u64)>>),
}

impl JobSpec {
    /// Creates a job with fio's defaults.
    pub fn new(name: &str) -> JobSpec {
        JobSpec {
            name: name.to_owned(),
            given: Vec::new(),
            kb_base: 1024,
            files: FileSpec::DEFAULT,
            rw: Rw { pattern: Pattern::Read, random: false, modifier: None },
            follow: Follow::Next,
            bs: [4096; 3],
            bsrange: [None; 3],
            bssplit: [None, None, None],
            bs_is_seq_rand: false,
            blockalign: [None; 3],
            engine: None,
            buffered: None,
            advice: None,
            hipri: false,
            iodepth: 1,
            batch_submit: 1,
            batch_complete_min: 1,
            batch_complete_max: 0,
            iodepth_low: 0,
            scheduler: None,
            numjobs: 1,
            size: None,
            io_size: None,
            offset: Quantity::Bytes(0),
            offset_increment: Quantity::Bytes(0),
            offset_align: None,
            number_ios: None,
            loops: 1,
            runtime: None,
            time_based: false,
            ramp_time: Time::ZERO,
            start_delay: (Time::ZERO, Time::ZERO),
            stonewall: false,
            rwmixread: 50,
            percentage_random: [100; 3],
            distribution: Distribution::Random,
            norandommap: false,
            randseed: None,
            randrepeat: true,
            rate: [0; 3],
            rate_iops: [0; 3],
            arrival: Arrival::Linear,
            thinktime: Time::ZERO,
            thinktime_blocks: None,
            thinktime_on_completion: true,
            thinktime_iotime: Time::ZERO,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            sync: false,
            guards: Guards::NONE,
        }
    }

    /// Returns the place of the last setting of an option, or of the job's name if the option is absent.
    pub(crate) fn place_of(&self, option: &str) -> Place {
        let found = self.given.iter().rev().find(|given| given.option == option);
        found.map_or_else(
            || Place { source: format!("job `{}`", self.name), key: option.to_owned(), ..Place::default() },
            |given| given.place.clone(),
        )
    }

    /// Returns the pauses that the job asks for.
    pub(crate) fn think(&self) -> Option<Think> {
        let every = (self.thinktime_iotime > Time::ZERO).then_some(self.thinktime_iotime);
        // As in fio, the default of one request between pauses does not apply with `thinktime_iotime`.
        let default = if every.is_some() { None } else { Some(1) };
        (self.thinktime > Time::ZERO).then(|| Think {
            time: self.thinktime,
            requests: self.thinktime_blocks.or(default),
            on_completion: self.thinktime_on_completion,
            every,
        })
    }
}

// Contents of an inline job or a job file.

/// Jobs of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Jobs {
    /// Job sections, in order.
    pub jobs: Vec<JobSpec>,
    /// Remarks on the text for the result.
    pub notes: Notes,
}

/// Remarks for the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Notes {
    /// Given options that have no effect here.
    pub inert: Vec<InertOption>,
    /// Likely mistakes.
    pub warnings: Vec<String>,
}

/// An option that was given and has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InertOption {
    /// Job name, or `global`.
    pub job: String,
    /// Name of the option.
    pub option: String,
    /// Value; empty for a bare flag.
    pub value: String,
    /// Reason why the option has no effect.
    pub reason: String,
}

/// Jobs that run at the same time. A group starts when every job of the group before it has ended and its requests
/// have completed.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Jobs, one entry per clone.
    pub jobs: Vec<Job>,
}

impl Jobs {
    /// Returns the sections between stonewalls.
    pub fn groups(&self) -> Vec<&[JobSpec]> {
        let starts = (0..self.jobs.len()).filter(|&i| i == 0 || self.jobs[i].stonewall);
        let mut starts: Vec<usize> = starts.collect();
        starts.push(self.jobs.len());
        starts.windows(2).map(|pair| &self.jobs[pair[0]..pair[1]]).collect()
    }

    /// Returns each flow's path to a file through the kernel of a host and its read advice, in the order of flows;
    /// none if requests go straight to the drive. `direct` says whether the host has a kernel that direct requests
    /// pass.
    ///
    /// # Errors
    /// If only some jobs go through the kernel, or one cannot.
    pub fn ways(&self, direct: bool) -> Result<Option<Vec<(Way, Advice)>>, Diagnostic> {
        let Some(job) = self.jobs.iter().find(|job| job.takes_a_file(direct)) else { return Ok(None) };
        if let Some(other) = self.jobs.iter().find(|job| !job.takes_a_file(direct)) {
            let how = if job.is_cached() { "the page cache" } else { "the kernel (`direct=1`)" };
            let what = format!(
                "job `{}` goes through {how} and job `{}` does not: all jobs of a workload must take the same path",
                job.name, other.name
            );
            return Err(Diagnostic::new(what)
                .at(job.place_of("direct"))
                .help("give each path its own --workload; workloads run side by side"));
        }
        let trims = |job: &&JobSpec| matches!(job.rw.pattern, Pattern::Trim | Pattern::TrimWrite);
        if let Some(job) = self.jobs.iter().find(trims) {
            let (how, help) = if job.is_cached() {
                ("the page cache", "trims need direct=1")
            } else {
                ("the kernel of a host", "leave `direct` out: the job goes straight to the drive")
            };
            let what = format!("job `{}`: trims through {how} are not modelled", job.name);
            return Err(Diagnostic::new(what).at(job.place_of("rw")).help(help));
        }
        if let Some(job) = self.jobs.iter().find(|job| job.drives().is_some()) {
            let help = "leave `direct` out: the job goes straight to the drives";
            return Err(job.refuse_drives("the kernel of the host has one", help));
        }
        let mut ways = Vec::new();
        for job in &self.jobs {
            let way = (job.way()?, job.advice());
            ways.extend(std::iter::repeat_n(way, usize::from(job.numjobs)));
        }
        Ok(Some(ways))
    }

    /// Returns the scheduler of the drive in the block layer of a host, if a job sets it.
    ///
    /// # Errors
    /// If two jobs set different schedulers.
    pub fn scheduler(&self) -> Result<Option<Scheduler>, Diagnostic> {
        let mut saying = self.jobs.iter().filter(|job| job.scheduler.is_some());
        let Some(first) = saying.next() else { return Ok(None) };
        match saying.find(|job| job.scheduler != first.scheduler) {
            None => Ok(first.scheduler),
            Some(other) => {
                let what = format!(
                    "jobs `{}` and `{}` set different schedulers: a drive has one scheduler per run",
                    first.name, other.name
                );
                Err(Diagnostic::new(what).at(other.place_of("ioscheduler")))
            }
        }
    }

    /// Warns of `ioscheduler` on requests that bypass the block layer of a host.
    pub fn unscheduled(&self) -> impl Iterator<Item = String> {
        self.jobs.iter().filter_map(JobSpec::unscheduled)
    }

    /// Warns of ineffective `hipri` on a host whose drives have `poll_queues` polled queues.
    pub fn polling(&self, poll_queues: u16) -> Vec<String> {
        let jobs = self.jobs.iter().filter(|job| job.hipri);
        jobs.filter_map(|job| job.polling(poll_queues)).collect()
    }

    /// Resolves every job against a device of `capacity` bytes that only they use, and numbers the flows.
    ///
    /// # Errors
    /// If a job does not fit.
    pub fn resolve(&self, capacity: u64) -> Result<Vec<Group>, Diagnostic> {
        self.resolve_on(&Layout::of([self], capacity)?, capacity)
    }

    /// Resolves every job on a device on which their files are laid out.
    ///
    /// # Errors
    /// If a job does not fit.
    pub fn resolve_on(&self, layout: &Layout, capacity: u64) -> Result<Vec<Group>, Diagnostic> {
        let clones: u64 = self.jobs.iter().map(|job| job.numjobs as u64).sum();
        if clones > 65_536 {
            let what = format!("{clones} jobs, clones included; at most 65536 are supported");
            return Err(Diagnostic::new(what));
        }
        let mut flow = 0u32;
        let mut resolve_group = |specs: &[JobSpec]| {
            let mut jobs = Vec::new();
            for spec in specs {
                for clone in 0..spec.numjobs {
                    let files = layout.regions(spec, clone);
                    jobs.push(Job { flow: flow as u16, ..spec.resolve_over(capacity, clone, files)? });
                    flow += 1;
                }
            }
            Ok(Group { jobs })
        };
        self.groups().into_iter().map(&mut resolve_group).collect()
    }
}
