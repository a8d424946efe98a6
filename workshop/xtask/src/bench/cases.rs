//! Benchmark cases with their metrics and targets.

use super::sample;
use super::sample::Sample;
use crate::workspace;
use anyhow::Result;

/// Device D16: 8 channels x 4 ways x 1 die x 2 planes x 512 blocks x 128 pages x 4 KiB = 16 GiB.
const D16: &str = "d16";
/// Device of MQSim's own ssdconfig.xml: 512 GiB, write cache, demand-cached mapping.
const MQSIM_DEFAULT: &str = "mqsim-default";

/// Single run of the binary.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) system: &'static str,
    /// Values of `--set`.
    pub(super) set: &'static [&'static str],
    pub(super) input: Input,
    /// Value of `--precondition`.
    pub(super) precondition: Option<&'static str>,
    /// Number of host requests that must complete; `None` for a program.
    pub(super) requests: u64,
    pub(super) goals: &'static [Goal],
    /// Equivalent for a rival; `None` where none can run it.
    pub(super) flow: Option<Flow>,
}

pub(super) enum Input {
    /// Inline job.
    Job(&'static str),
    /// Program of a GPU or of a server.
    Program(&'static str),
    /// File below the data folder.
    Trace(&'static str),
    /// Profile of this many kernels, read by `nandscape sample`.
    Profile(u64),
    /// Sweep file, and its number of runs.
    Sweep(&'static str, usize),
}

/// Same workload in the form of a rival.
pub(super) enum Flow {
    Random { read_percent: u32, queue_depth: u32 },
    Sequential { sectors: u32, queue_depth: u32 },
    Trace,
}

/// Metric with its target.
pub(super) struct Goal {
    pub(super) metric: Metric,
    /// Target; `None` for a metric that is only shown.
    pub(super) target: Option<f64>,
}

#[derive(Clone, Copy)]
pub(super) enum Metric {
    /// Host requests per CPU second of the simulated part.
    RequestsPerCpuSecond,
    /// Warp instructions per CPU second of the simulated part.
    InstructionsPerCpuSecond,
    /// Instructions retired by cores of a server in the measured window, per CPU second of the simulated part.
    CoreInstructionsPerCpuSecond,
    /// Jobs completed by a server in the measured window, per CPU second of the simulated part.
    JobsPerCpuSecond,
    /// Events per CPU second of the simulated part.
    EventsPerCpuSecond,
    /// Flash pages per CPU second of the simulated part, at this many pages per request.
    PagesPerCpuSecond(u32),
    PreconditionSeconds,
    PeakRssMebibytes,
    /// CPU time of the whole process, as the kernel counts it.
    ProcessCpuMilliseconds,
    /// CPU time of the process, relative to that of `gzip -t` on the same file.
    OverUnpacking,
    /// CPU time of a sweep whose runs precondition separately, relative to that with shared states.
    SharedStatesCpu,
    /// Wall-clock time of a sweep whose runs precondition separately, relative to that with shared states.
    SharedStatesWall,
}

const fn goal(metric: Metric, target: f64) -> Goal {
    Goal { metric, target: Some(target) }
}

const WHOLE: Goal = Goal { metric: Metric::ProcessCpuMilliseconds, target: None };

const SERVICE_GOALS: &[Goal] = &[
    goal(Metric::CoreInstructionsPerCpuSecond, 20.0e6),
    Goal { metric: Metric::JobsPerCpuSecond, target: None },
    Goal { metric: Metric::EventsPerCpuSecond, target: None },
    WHOLE,
];

const GRAPH_GOALS: &[Goal] = &[
    goal(Metric::EventsPerCpuSecond, 8.0e6),
    Goal { metric: Metric::InstructionsPerCpuSecond, target: None },
    WHOLE,
];

/// A mix in at most ten CPU seconds.
const MIX_GOALS: &[Goal] = &[
    goal(Metric::ProcessCpuMilliseconds, 10_000.0),
    Goal { metric: Metric::EventsPerCpuSecond, target: None },
];

/// AstriFlash with a quarter of its cores, and of what they share.
const FOUR_CORES: &[&str] = &[
    "cpu.cores=4",
    "fabric.mesh.rows=2",
    "fabric.mesh.columns=2",
    "l2.banks=4",
    "memory.dram_cache.dram.controllers=1",
    "flash.geometry.channels=4",
    "cpu.load.jobs=4800",
];
/// With four times as much.
const SIXTY_FOUR_CORES: &[&str] = &[
    "cpu.cores=64",
    "fabric.mesh.rows=8",
    "fabric.mesh.columns=8",
    "l2.banks=64",
    "memory.dram_cache.dram.controllers=16",
    "flash.geometry.channels=64",
    "cpu.load.jobs=76800",
];

const SERVICE_GOALS_AND_MEMORY: &[Goal] =
    &[goal(Metric::CoreInstructionsPerCpuSecond, 20.0e6), goal(Metric::PeakRssMebibytes, 2048.0), WHOLE];

/// A service on a server.
const fn service(
    name: &'static str,
    system: &'static str,
    set: &'static [&'static str],
    program: &'static str,
) -> Case {
    Case {
        name,
        system,
        set,
        input: Input::Program(program),
        precondition: None,
        requests: 0,
        goals: if set.is_empty() { SERVICE_GOALS } else { SERVICE_GOALS_AND_MEMORY },
        flow: None,
    }
}

/// A graph program on a GPU.
const fn graph(name: &'static str, system: &'static str, program: &'static str) -> Case {
    Case {
        name,
        system,
        set: &[],
        input: Input::Program(program),
        precondition: None,
        requests: 0,
        goals: GRAPH_GOALS,
        flow: None,
    }
}

/// A mix of 24 kernels on an accelerator, or on the rival behind a host.
const fn mix(name: &'static str, system: &'static str) -> Case {
    Case {
        name,
        system,
        set: &[],
        input: Input::Program("mx1:assignment=0"),
        precondition: None,
        requests: 0,
        goals: MIX_GOALS,
        flow: None,
    }
}

/// A profile that is sampled.
const fn profile(name: &'static str, kernels: u64, goals: &'static [Goal]) -> Case {
    Case {
        name,
        system: "",
        set: &[],
        input: Input::Profile(kernels),
        precondition: None,
        requests: 0,
        goals,
        flow: None,
    }
}

/// Short random reads at six times of the array and four rates of the channel.
const TIMES: &str = r#"
system = "d16"
workloads = ["fio:rw=randread,bs=4k,iodepth=16,number_ios=100000,size=90%,norandommap=1"]
metrics = ["io.read.iops", "io.read.latency_ns.p99"]
[set]
flash.cell.read = [["20us"], ["30us"], ["40us"], ["50us"], ["70us"], ["90us"]]
flash.channel.rate = ["200MT/s", "400MT/s", "600MT/s", "800MT/s"]
"#;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "randread",
        system: D16,
        set: &[],
        input: Input::Job("fio:rw=randread,bs=4k,iodepth=64,number_ios=1000000,size=90%,norandommap=1"),
        precondition: Some("sequential:share=90%"),
        requests: 1_000_000,
        goals: &[
            goal(Metric::RequestsPerCpuSecond, 3.3e6),
            goal(Metric::PreconditionSeconds, 0.2),
            goal(Metric::PeakRssMebibytes, 64.0),
            WHOLE,
        ],
        flow: Some(Flow::Random { read_percent: 100, queue_depth: 64 }),
    },
    Case {
        name: "randwrite",
        system: D16,
        set: &[],
        input: Input::Job("fio:rw=randwrite,bs=4k,iodepth=64,number_ios=1000000,size=90%,norandommap=1"),
        precondition: None,
        requests: 1_000_000,
        goals: &[
            goal(Metric::RequestsPerCpuSecond, 1.0e6),
            goal(Metric::PreconditionSeconds, 2.0),
            goal(Metric::PeakRssMebibytes, 64.0),
            WHOLE,
        ],
        flow: Some(Flow::Random { read_percent: 0, queue_depth: 64 }),
    },
    Case {
        name: "mixed",
        system: D16,
        set: &[],
        input: Input::Job(
            "fio:rw=randrw,rwmixread=70,bs=4k,iodepth=64,number_ios=1000000,size=90%,norandommap=1",
        ),
        precondition: None,
        requests: 1_000_000,
        goals: &[goal(Metric::RequestsPerCpuSecond, 1.3e6), WHOLE],
        flow: Some(Flow::Random { read_percent: 70, queue_depth: 64 }),
    },
    Case {
        name: "seqread",
        system: D16,
        set: &[],
        input: Input::Job("fio:rw=read,bs=128k,iodepth=16,number_ios=100000,size=90%"),
        precondition: Some("sequential:share=90%"),
        requests: 100_000,
        goals: &[goal(Metric::PagesPerCpuSecond(32), 6.0e6), WHOLE],
        flow: Some(Flow::Sequential { sectors: 256, queue_depth: 16 }),
    },
    Case {
        name: "tpcc-small",
        system: MQSIM_DEFAULT,
        set: &[],
        input: Input::Trace("block_io/mqsim/tpcc-small.trace"),
        precondition: None,
        requests: 6_999,
        goals: &[goal(Metric::ProcessCpuMilliseconds, 30.0)],
        flow: Some(Flow::Trace),
    },
    Case {
        name: "jobs-1000",
        system: D16,
        set: &[],
        input: Input::Job("fio:rw=randread,bs=4k,numjobs=1000,number_ios=1000,size=90%,norandommap=1"),
        precondition: Some("sequential:share=90%"),
        requests: 1_000_000,
        goals: &[goal(Metric::RequestsPerCpuSecond, 1.6e6), WHOLE],
        flow: None,
    },
    Case {
        name: "steady-128g",
        system: D16,
        set: &["flash.geometry.blocks=4096"],
        input: Input::Job("fio:rw=randread,bs=4k,iodepth=64,number_ios=1000,norandommap=1"),
        precondition: None,
        requests: 1_000,
        goals: &[goal(Metric::PreconditionSeconds, 16.0), goal(Metric::PeakRssMebibytes, 512.0)],
        flow: None,
    },
    Case {
        name: "first-writes-64t",
        system: D16,
        set: &["flash.geometry.blocks=2097152"],
        input: Input::Job("fio:rw=randwrite,bs=4k,iodepth=64,number_ios=200000,norandommap=1"),
        precondition: Some("sequential:share=90%"),
        requests: 200_000,
        goals: &[goal(Metric::RequestsPerCpuSecond, 0.5e6), goal(Metric::PeakRssMebibytes, 2048.0)],
        flow: None,
    },
    graph("ideal-bfs1", "ideal", "bfs1:scale=15"),
    graph("ideal-betw", "ideal", "betw:scale=15"),
    graph("zng-bfs1", "zng", "bfs1:scale=15"),
    graph("zng-betw", "zng", "betw:scale=15"),
    service("dram-only-tatp", "dram-only", &[], "tatp"),
    service("astriflash-tatp", "astriflash", &[], "tatp"),
    service("astriflash-tpcc", "astriflash", &[], "tpcc"),
    service("astriflash-4", "astriflash", FOUR_CORES, "tatp:size=64GiB"),
    service("astriflash-64", "astriflash", SIXTY_FOUR_CORES, "tatp:size=1TiB"),
    mix("intrao3-mx1", "flashabacus"),
    mix("interst-mx1", "flashabacus-inter-st"),
    mix("simd-mx1", "flashabacus-simd"),
    Case {
        name: "nvbit",
        system: "ideal",
        set: &[],
        input: Input::Trace("gpu_traces/macsim_nvbit_vectormultadd_16384.tar.xz"),
        precondition: None,
        requests: 0,
        goals: &[goal(Metric::InstructionsPerCpuSecond, 2.3e6), WHOLE],
        flow: None,
    },
    Case {
        name: "sweep-24",
        system: "",
        set: &[],
        input: Input::Sweep(TIMES, 24),
        precondition: None,
        requests: 0,
        goals: &[goal(Metric::SharedStatesCpu, 1.8), goal(Metric::SharedStatesWall, 1.8), WHOLE],
        flow: None,
    },
    profile("sample-20k", 20_000, &[goal(Metric::ProcessCpuMilliseconds, 1_000.0)]),
    profile(
        "sample-35m",
        35_000_000,
        &[
            goal(Metric::ProcessCpuMilliseconds, 60_000.0),
            goal(Metric::PeakRssMebibytes, 2048.0),
            goal(Metric::OverUnpacking, 3.0),
        ],
    ),
];

impl Case {
    /// Value of `--workload`; `None` if the file does not exist.
    pub(super) fn workload(&self) -> Option<String> {
        match self.input {
            Input::Job(text) | Input::Program(text) => Some(text.into()),
            Input::Trace(name) => {
                let path = workspace::data()?.join(name);
                path.is_file().then(|| path.to_string_lossy().into_owned())
            }
            Input::Profile(kernels) => Some(sample::profile_path(kernels).to_string_lossy().into_owned()),
            Input::Sweep(..) => Some("sweep".into()),
        }
    }
}

impl Goal {
    /// Ratio of a value to the target: 1 and more is reached, whichever direction is better.
    pub(super) fn ratio(&self, value: f64) -> Option<f64> {
        let target = self.target?;
        Some(if self.metric.more_is_better() { value / target } else { target / value })
    }
}

impl Metric {
    pub(super) fn name(self) -> &'static str {
        match self {
            Metric::RequestsPerCpuSecond => "requests per CPU second",
            Metric::InstructionsPerCpuSecond => "warp insts per CPU s",
            Metric::CoreInstructionsPerCpuSecond => "core insts per CPU s",
            Metric::JobsPerCpuSecond => "jobs per CPU second",
            Metric::EventsPerCpuSecond => "events per CPU second",
            Metric::PagesPerCpuSecond(_) => "pages per CPU second",
            Metric::PreconditionSeconds => "preconditioning, s",
            Metric::PeakRssMebibytes => "peak RSS, MiB",
            Metric::ProcessCpuMilliseconds => "whole process CPU, ms",
            Metric::OverUnpacking => "CPU over that of gzip -t",
            Metric::SharedStatesCpu => "CPU, states apart/shared",
            Metric::SharedStatesWall => "wall, states apart/shared",
        }
    }

    pub(super) fn value(self, sample: &Sample) -> Result<f64> {
        match self {
            Metric::RequestsPerCpuSecond => Ok(sample.requests_per_cpu_s),
            Metric::InstructionsPerCpuSecond => sample.per_cpu_second("/gpu/0/warp_instructions"),
            Metric::CoreInstructionsPerCpuSecond => sample.per_cpu_second("/cpu/0/instructions"),
            Metric::JobsPerCpuSecond => sample.per_cpu_second("/cpu/0/jobs"),
            Metric::EventsPerCpuSecond => sample.per_cpu_second("/run/events"),
            Metric::PagesPerCpuSecond(pages) => Ok(sample.requests_per_cpu_s * f64::from(pages)),
            Metric::PreconditionSeconds => sample.number("/run/precondition_cpu_s"),
            Metric::PeakRssMebibytes => Ok(sample.number("/run/peak_rss_bytes")? / (1024.0 * 1024.0)),
            Metric::ProcessCpuMilliseconds => Ok(sample.cpu.as_secs_f64() * 1000.0),
            Metric::SharedStatesCpu => sample.number("/cpu_apart_over_shared"),
            Metric::SharedStatesWall => sample.number("/wall_apart_over_shared"),
            Metric::OverUnpacking => Ok(sample.cpu.as_secs_f64() / sample.number("/unpacking_cpu_s")?),
        }
    }

    fn more_is_better(self) -> bool {
        matches!(
            self,
            Metric::RequestsPerCpuSecond
                | Metric::InstructionsPerCpuSecond
                | Metric::CoreInstructionsPerCpuSecond
                | Metric::JobsPerCpuSecond
                | Metric::EventsPerCpuSecond
                | Metric::PagesPerCpuSecond(_)
                | Metric::SharedStatesCpu
                | Metric::SharedStatesWall
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_one_and_more_is_reached_either_way() {
        let rate = goal(Metric::RequestsPerCpuSecond, 2.0e6);
        assert_eq!((rate.ratio(4.0e6), rate.ratio(1.0e6)), (Some(2.0), Some(0.5)));
        let memory = goal(Metric::PeakRssMebibytes, 64.0);
        assert_eq!((memory.ratio(32.0), memory.ratio(128.0)), (Some(2.0), Some(0.5)));
        assert_eq!(WHOLE.ratio(1.0), None);
    }

    #[test]
    fn the_job_asks_for_the_requests_of_the_case() {
        for case in CASES {
            if let Input::Job(job) = case.input {
                let value = |name: &str| {
                    job.split(',').find_map(|option| option.strip_prefix(name)?.parse::<u64>().ok())
                };
                let asked = value("number_ios=").map(|each| each * value("numjobs=").unwrap_or(1));
                assert_eq!(asked, Some(case.requests), "{}", case.name);
            }
        }
    }
}
