//! What the options of a job say together: contradictions, and what is likely not meant.

use config::Diagnostic;
use engine::Time;

use super::spec::{Engine, JobSpec, Pattern};
use crate::synth::{Access, Arrival, Direction, Each, Job, Order};

impl JobSpec {
    /// Options that exclude one another.
    pub(crate) fn contradictions(&self) -> Result<(), Diagnostic> {
        let error = |what: &str, option: &str| {
            Err(Diagnostic::new(format!("job `{}`: {what}", self.name)).at(self.place_of(option)))
        };
        let any = |each: &Each<u64>| each.iter().any(|&n| n > 0);
        if any(&self.rate) && any(&self.rate_iops) {
            return error("rate and rate_iops exclude one another", "rate_iops");
        }
        if self.time_based && self.runtime.is_none() {
            return error("time_based needs a runtime", "time_based");
        }
        if self.bsrange.iter().any(Option::is_some) && self.bssplit.iter().any(Option::is_some) {
            return error("bsrange and bssplit exclude one another", "bssplit");
        }
        Ok(())
    }

    /// Options that do nothing beside the others, with the reason.
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
        when(blocking, &batches, "a blocking ioengine has one request at a time");
        let cached = !blocking && self.buffered == Some(true);
        when(cached, &batches, "the kernel serves buffered requests as they are submitted");
        when(mapped, &["sync"], "a store of a mapping is durable once it has been flushed: fsync, end_fsync");
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

/// Adds what is likely not meant, now that the device is known.
pub(super) fn warn(spec: &JobSpec, job: &mut Job) {
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
                "job `{}`: {wanted} requests are asked for, but the job ends after {} bytes, at most {possible} requests; \
                 io_size, loops or time_based make it go on",
                spec.name, limits.bytes
            ));
        }
    }
    let random = matches!(job.order, Order::Random { .. });
    if job.repeat && random && (limits.passes > 1 || limits.bytes > limits.pass_bytes) {
        let effect = match job.access.writes() {
            true => {
                ", so that blocks die in the order in which they were written and write amplification stays near 1"
            }
            false => "",
        };
        job.warnings.push(format!(
            "job `{}`: each pass repeats the first block by block, as in fio{effect}; randrepeat=0 draws anew",
            spec.name
        ));
    }
}
