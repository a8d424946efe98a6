//! Mean latencies of closed loops on D16 beside MQSim's, and how near random reads come to what the dies allow.

use super::{PLACE, figure};
use crate::stand::run;
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use proto::IoOp;

/// Requests of each run, as MQSim's: filling and draining of the queue are in the mean.
const REQUESTS: u32 = 200_000;

/// A device of ours that stands for one of MQSim's.
struct Setting {
    /// First parts of the ids.
    name: &'static str,
    overrides: &'static [&'static str],
    /// Name in the table.
    device: &'static str,
    /// True if the device is empty, as MQSim's is; else every page that is read has been written in order.
    empty: bool,
    rule: Rule,
    note: &'static str,
}

const SHIPPED: Setting = Setting {
    name: "mqsim",
    overrides: &["flash.die.multi_plane=off", "flash.channel.arbiter=fifo"],
    device: "D16-single-plane",
    empty: false,
    rule: Rule::Share(0.05),
    note: "D16 without multi-plane commands, its channels first come first served",
};
/// MQSim's rounding of a transfer, its arbitration, its fetch limit.
const ALIGNED: Setting = Setting {
    name: "mqsim.aligned",
    overrides: &[
        "flash.die.multi_plane=off",
        "flash.die.scheduler=priority",
        "flash.channel.interface=nv_ddr3",
        "flash.channel.rate=1000MT/s",
        "flash.channel.arbiter=data_first",
        "flash.host.nvme.in_controller=512",
    ],
    device: "D16-single-plane",
    empty: false,
    rule: Rule::Share(0.02),
    note: "as MQSim works: 4 KiB in 4,096 ns (it rounds 1000 / 800 down), data before commands, reads before programs, \
           512 requests in the controller",
};
const TRUE_RATE: Setting = Setting {
    name: "gap.mqsim.transfer",
    overrides: &["flash.die.multi_plane=off", "flash.channel.arbiter=data_first"],
    device: "D16-single-plane",
    empty: false,
    rule: Rule::Apart(0.05),
    note: "MQSim's arbitration at the true 800 MT/s: MQSim moves 4 KiB in 4,096 ns instead of 5,120 ns, because it \
           rounds 1000 / 800 down",
};
const PAIRING: Setting = Setting {
    name: "mqsim.pairing",
    overrides: &[
        "flash.die.partner_search=65536",
        "flash.ftl.unwritten_read=created",
        "flash.channel.interface=nv_ddr3",
        "flash.channel.rate=1000MT/s",
        "flash.channel.arbiter=data_first",
        "flash.host.nvme.in_controller=8192",
    ],
    device: "D16-fetch8192",
    empty: true,
    rule: Rule::Share(0.01),
    note: "as MQSim works: reads of an empty device create pages in order, and a die looks through all its reads for one \
           of the same page number in the other plane: 96 % of them pair",
};
const HEADS: Setting = Setting {
    name: "gap.mqsim.pairing",
    overrides: &[
        "flash.channel.interface=nv_ddr3",
        "flash.channel.rate=1000MT/s",
        "flash.channel.arbiter=data_first",
        "flash.host.nvme.in_controller=8192",
    ],
    device: "D16-fetch8192",
    empty: false,
    rule: Rule::Apart(0.25),
    note: "closed by mqsim.pairing: MQSim's reads create pages in order and pair with any other of the die; here pages \
           lie where they were written, and dies look at the head of each plane's queue",
};

/// A closed loop, and the requests whose mean is compared.
struct Loop {
    setting: &'static Setting,
    id: String,
    job: String,
    /// Name in the table.
    workload: String,
    op: IoOp,
}

fn read(setting: &'static Setting, depth: u32) -> Loop {
    Loop {
        setting,
        id: format!("{}.read.qd{depth}", setting.name),
        job: format!("rw=randread,iodepth={depth}"),
        workload: format!("rand-read-4k-qd{depth}"),
        op: IoOp::Read,
    }
}

fn write(setting: &'static Setting, depth: u32) -> Loop {
    Loop {
        setting,
        id: format!("{}.write.qd{depth}", setting.name),
        job: format!("rw=randwrite,iodepth={depth}"),
        workload: format!("rand-write-4k-qd{depth}-nogc"),
        op: IoOp::Write,
    }
}

fn mixed(setting: &'static Setting, op: IoOp) -> Loop {
    Loop {
        setting,
        id: format!("{}.mixed.{}", setting.name, verb(op)),
        job: "rw=randrw,rwmixread=70,iodepth=64".into(),
        workload: "rand-rw70-4k-qd64-nogc".into(),
        op,
    }
}

fn verb(op: IoOp) -> &'static str {
    if op == IoOp::Read { "read" } else { "write" }
}

pub(super) fn cases() -> Vec<Case> {
    let shipped = [1, 4, 16, 64, 256].map(|depth| read(&SHIPPED, depth));
    let aligned = [1, 4, 16, 64, 256, 512, 1024, 4096].map(|depth| read(&ALIGNED, depth));
    let writes = [&SHIPPED, &ALIGNED].map(|setting| [1, 64].map(|depth| write(setting, depth)));
    let mixed = [IoOp::Read, IoOp::Write].map(|op| mixed(&ALIGNED, op));
    let rest = [read(&PAIRING, 4096), read(&TRUE_RATE, 256), read(&HEADS, 4096)];
    let loops =
        shipped.into_iter().chain(aligned).chain(writes.into_iter().flatten()).chain(mixed).chain(rest);
    loops
        .map(|of| {
            let ids = [of.id.clone()];
            Case::new(ids, move |context| rows(&of, context))
        })
        .collect()
}

fn rows(of: &Loop, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let Setting { overrides, device, empty, rule, note, .. } = of.setting;
    let expected = figure(&of.workload, device, &format!("{}_response_mean", verb(of.op)))?;
    let job = format!("fio:{},bs=4k,norandommap=1,number_ios={REQUESTS}", of.job);
    // Writes of one kind go to an empty device, which needs no GC.
    let written = !empty && !of.job.starts_with("rw=randwrite");
    let ran = run(overrides, written, &job, context)?;
    let measured = ran.of(of.op).latency.mean().unwrap_or(f64::NAN) / 1e3;
    let row = Row::new(&of.id, "ns", expected, measured, *rule)
        .place(format!("mean latency of {} on {device}: {PLACE}", of.workload))
        .note(format!("{job}; {note}"));
    Ok(vec![row])
}

const DEPTHS: &[u32] = &[512, 1024, 4096];

const OVERRIDES: &[&str] = &["flash.die.multi_plane=off"];

/// Least share of the limit, per cent.
const LEAST: f64 = 95.0;

/// Command 295 ns (tCS 20, seven cycles of 25, tWB 100), tR, set-up of data 50 ns, 4 KiB at 800 MB/s.
const SERVICE_NS: f64 = 295.0 + 50_000.0 + 50.0 + 5_120.0;

const DIES: f64 = 32.0;

pub(super) fn limit_cases() -> Vec<Case> {
    let case = |depth: &'static u32| {
        let id = format!("limit.read.qd{depth}");
        let ids = [id.clone()];
        Case::new(ids, move |context| limit_rows(&id, *depth, context))
    };
    DEPTHS.iter().map(case).collect()
}

fn limit_rows(id: &str, depth: u32, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let job = format!(
        "fio:rw=randread,bs=4k,norandommap=1,iodepth={depth},number_ios={}",
        context.choose(1_000_000, 400_000)
    );
    let ran = run(OVERRIDES, true, &job, context)?;
    let share = 100.0 * ran.bytes_per_s(IoOp::Read) / 4096.0 * SERVICE_NS * 1e-9 / DIES;
    let row = Row::new(id, "%", LEAST, share, Rule::AtLeast)
        .place("D16, single-plane random reads: share of 32 dies / (command + tR + data out), 576,940 IOPS")
        .note(format!("{job}; D16 as it is shipped, commands before data; MQSim reaches 85 %, because data before commands makes dies work in step"));
    Ok(vec![row])
}
