//! Options of a job's queue and of its path through the kernel: batches, the drive's scheduler, advice.

use config::Diagnostic;

use super::spec::{Hint, JobSpec, Scheduler};
use super::table::{FioOption, honoured};
use super::value::Value;

type Set = Result<(), Diagnostic>;

/// Rows of the table.
pub(super) const QUEUE: &[FioOption] = &[
    honoured(
        "fadvise_hint",
        None,
        fadvise_hint,
        "read-ahead for requests through the host's page cache: 0, 1 (as rw says), sequential, random; default 1",
    ),
    honoured(
        "iodepth_batch",
        Some("iodepth_batch_submit"),
        iodepth_batch,
        "requests submitted at once, fewer when the queue is full; 0: iodepth",
    ),
    honoured(
        "iodepth_batch_complete_min",
        Some("iodepth_batch_complete"),
        batch_complete_min,
        "completions that a full queue waits for; 0: as 1 with iodepth_batch_complete_max, else waits for each request, as fio 3.42 does despite its documentation",
    ),
    honoured(
        "iodepth_batch_complete_max",
        None,
        batch_complete_max,
        "completions reaped at once; at least iodepth_batch_complete_min",
    ),
    honoured(
        "iodepth_low",
        None,
        iodepth_low,
        "requests to which a full queue drains before it is refilled; 0: iodepth",
    ),
    honoured(
        "ioscheduler",
        None,
        ioscheduler,
        "scheduler of the drive in the host's block layer: none, mq-deadline or kyber; no effect on requests that go straight to the drive",
    ),
];

fn fadvise_hint(job: &mut JobSpec, v: Value) -> Set {
    job.advice = Some(v.word(&[
        ("0", Hint::Nothing),
        ("none", Hint::Nothing),
        ("1", Hint::ByPattern),
        ("sequential", Hint::Sequential),
        ("random", Hint::Random),
    ])?);
    Ok(())
}

fn iodepth_batch(job: &mut JobSpec, v: Value) -> Set {
    job.batch_submit = v.number(0, u32::MAX as u64)? as u32;
    Ok(())
}

fn batch_complete_min(job: &mut JobSpec, v: Value) -> Set {
    job.batch_complete_min = v.number(0, u32::MAX as u64)? as u32;
    Ok(())
}

fn batch_complete_max(job: &mut JobSpec, v: Value) -> Set {
    job.batch_complete_max = v.number(0, u32::MAX as u64)? as u32;
    Ok(())
}

fn iodepth_low(job: &mut JobSpec, v: Value) -> Set {
    job.iodepth_low = v.number(0, u32::MAX as u64)? as u32;
    Ok(())
}

fn ioscheduler(job: &mut JobSpec, v: Value) -> Set {
    if v.text()? == "bfq" {
        let help = "use mq-deadline or kyber; none passes requests on in arrival order";
        return Err(Diagnostic::new("the scheduler is not modelled").help(help));
    }
    // Before Linux had multi-queue drives, `noop` and `deadline` were the names of none and mq-deadline.
    job.scheduler = Some(v.word(&[
        ("none", Scheduler::None),
        ("mq-deadline", Scheduler::MqDeadline),
        ("kyber", Scheduler::Kyber),
        ("noop", Scheduler::None),
        ("deadline", Scheduler::MqDeadline),
    ])?);
    Ok(())
}
