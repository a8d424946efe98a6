//! Options of several commands: what to run, how traces are read, and whole numbers; what is wrong with a number is
//! said of its value.

use crate::complete;
use crate::output::Fault;
use config::units::Duration;
use config::{Diagnostic, Place};
use engine::Time;
use machine::run::Plan;
use requests::trace::{Remap, TraceOptions};
use sweep::{TraceText, warmup};

/// A system, and how workloads run on it.
#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    /// A shipped system or a TOML file
    #[arg(add = clap_complete::ArgValueCompleter::new(complete::systems))]
    pub(crate) system: String,
    /// Overrides a value of the spec (key.path=value); repeatable
    #[arg(long, add = clap_complete::ArgValueCompleter::new(complete::settings))]
    set: Vec<String>,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1, value_parser = whole)]
    seed: u64,
    /// State of the device before the run (none, sequential, steady:share=90%, ...); overrides the spec
    #[arg(long)]
    precondition: Option<String>,
    /// Leaves out of the results the first so many requests to complete, exactly, or what completes before this simulated time
    /// (5000, 10ms); a run that ends before has a failed check
    #[arg(long)]
    warmup: Option<String>,
    /// How traces are read
    #[command(flatten)]
    trace: TraceArgs,
    /// Replays traces at this queue depth, at least 1, instead of at their own times, which are not used then
    #[arg(long, value_parser = whole_u32)]
    queue_depth: Option<u32>,
}

impl PlanArgs {
    /// The system, as it is given.
    pub(crate) fn system(&self) -> &str {
        &self.system
    }

    /// Options that may name files.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = &String> {
        self.set.iter().chain(&self.precondition)
    }

    /// The plan that these workloads make.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn plan(&self, workloads: &[String]) -> Result<Plan, Diagnostic> {
        let mut set = self.set.clone();
        set.extend(self.state()?.into_iter().flatten());
        Ok(Plan {
            system: self.system.clone(),
            text: None,
            set,
            workloads: workloads.to_vec(),
            seed: self.seed,
            precondition: None,
            warmup: self.warmup.as_deref().map(warmup).transpose()?,
            trace: self.trace.options(Remap::Fit)?,
            queue_depth: self.queue_depth,
        })
    }

    /// The state of `--precondition` as overrides, one for each table of drives.
    fn state(&self) -> Result<Option<Vec<String>>, Diagnostic> {
        let Some(text) = self.precondition.as_deref() else { return Ok(None) };
        let plan = Plan { set: self.set.clone(), ..Plan::new(&self.system, "") };
        plan.overrides_of_state(text).map(Some)
    }

    /// A fault of the state stands in what the user wrote, not in the override that was made of it.
    pub(crate) fn named(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Input(fault) => Fault::Input(self.placed(fault)),
            undelivered @ Fault::Undelivered(_) => undelivered,
        }
    }

    fn placed(&self, mut fault: Diagnostic) -> Diagnostic {
        if let (Some(place), Some(text), Ok(Some(set))) = (&mut fault.place, &self.precondition, self.state())
            && set.contains(&place.text)
        {
            let key = std::mem::take(&mut place.key);
            **place =
                Place { source: "--precondition".to_owned(), text: text.clone(), key, ..Place::default() };
        }
        fault
    }
}

/// How traces are read.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Trace format; recognised by content if left out
    #[arg(long)]
    format: Option<String>,
    /// What the columns of a table are, from left to right, such as time_us,op,lba_512,size_bytes; `-` passes over one
    #[arg(long, value_name = "NAMES")]
    columns: Option<String>,
    /// Unit of the trace's times (s, ms, us, 100ns, ns, ps)
    #[arg(long)]
    time_unit: Option<String>,
    /// Bytes of the trace's address unit
    #[arg(long, value_parser = whole)]
    sector: Option<u64>,
    /// Multiplies every time (0.5 is twice as fast)
    #[arg(long)]
    time_scale: Option<String>,
    /// Drops requests before this time, counted from the first request of all traces; it may be beyond the clock (300d)
    #[arg(long)]
    start: Option<String>,
    /// Drops requests from this time on, counted alike
    #[arg(long)]
    end: Option<String>,
    /// Reads at most this many requests
    #[arg(long, value_parser = whole)]
    max_requests: Option<u64>,
    /// Skips and counts bad lines
    #[arg(long)]
    pub(crate) lenient: bool,
    /// What happens to requests beyond the device: fit (the default of a run: as recorded if all fit, else compact), error, wrap or compact; counted and said
    #[arg(long)]
    remap: Option<String>,
    /// Time zero of several traces: clock (the default: the first request of all, so that each keeps its distance) or start (the first
    /// request of each)
    #[arg(long)]
    align: Option<String>,
    /// Whether the volumes of traces have addresses of their own: apart (the default: each file and each stream in it) or one (all are
    /// the same volume)
    #[arg(long)]
    volumes: Option<String>,
    /// The blkparse event that stands for a request (D, Q, ...)
    #[arg(long)]
    action: Option<String>,
    /// Requests held back to put an unsorted trace in order
    #[arg(long, value_parser = count_in_memory)]
    sort_window: Option<usize>,
}

impl TraceArgs {
    /// The reader's options; `remap` is what happens to requests beyond the device if the user does not say.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn options(&self, remap: Remap) -> Result<TraceOptions, Diagnostic> {
        let TraceArgs {
            format,
            columns,
            time_unit,
            sector,
            time_scale,
            start,
            end,
            max_requests,
            lenient,
            remap: beyond,
            align,
            volumes,
            action,
            sort_window,
        } = self.clone();
        let text = TraceText {
            format,
            columns,
            time_unit,
            sector,
            time_scale,
            start,
            end,
            max_requests,
            lenient,
            remap: beyond,
            align,
            volumes,
            action,
            sort_window,
        };
        text.options(remap)
    }
}

/// A fault in the value of an option.
pub(crate) fn at(option: &str, text: &str, fault: Diagnostic) -> Diagnostic {
    fault.at(Place { source: option.to_owned(), text: text.to_owned(), ..Place::default() })
}

/// Reads a time such as `10ms`.
///
/// # Errors
/// It is none.
pub(crate) fn time(text: &str) -> Result<Time, Diagnostic> {
    text.parse::<Duration>().map(|d| d.time())
}

/// Reads a whole number for clap.
///
/// # Errors
/// What the text is instead, and what is allowed.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    between(text, 0, u64::MAX)
}

/// As [`whole`], up to 2^63 - 1: what a document of TOML can hold.
///
/// # Errors
/// As [`whole`].
pub(crate) fn whole_i63(text: &str) -> Result<u64, String> {
    between(text, 0, i64::MAX as u64)
}

/// As [`whole`], from 1.
///
/// # Errors
/// As [`whole`].
pub(crate) fn from_one(text: &str) -> Result<u64, String> {
    between(text, 1, u64::MAX)
}

/// As [`whole`], up to 2^32 - 1.
///
/// # Errors
/// As [`whole`].
pub(crate) fn whole_u32(text: &str) -> Result<u32, String> {
    between(text, 0, u32::MAX.into()).map(|n| n as u32)
}

/// As [`whole`], for counts of things in memory.
///
/// # Errors
/// As [`whole`].
pub(crate) fn count_in_memory(text: &str) -> Result<usize, String> {
    between(text, 0, u32::MAX.into()).map(|n| n as usize)
}

/// How many go on at once: from 1.
///
/// # Errors
/// As [`whole`].
pub(crate) fn jobs_at_once(text: &str) -> Result<usize, String> {
    between(text, 1, 65_536).map(|n| n as usize)
}

fn between(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let expected = format!("a whole number from {least} to {most} is expected");
    if let Ok(number) = text.parse::<u64>() {
        let fault = || format!("`{text}` is out of range: {expected}");
        return Some(number).filter(|n| (least..=most).contains(n)).ok_or_else(fault);
    }
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    let what = match text.strip_prefix('-') {
        Some(_) if is_number => "is below zero",
        _ if is_number && text.contains(['.', 'e', 'E']) => "is not written as a whole number",
        _ if is_number => "is out of range",
        _ => "is not a number",
    };
    Err(format!("`{text}` {what}: {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_for_what_it_is() {
        assert_eq!((whole("0"), whole("18446744073709551615")), (Ok(0), Ok(u64::MAX)));
        for (text, what) in [
            ("-1", "is below zero"),
            ("-0.5", "is below zero"),
            ("1e3", "is not written as a whole number"),
            ("1.5", "is not written as a whole number"),
            ("18446744073709551616", "is out of range"),
            ("0", "is out of range"),
            ("x", "is not a number"),
            ("", "is not a number"),
            ("inf", "is not a number"),
        ] {
            let said = from_one(text).unwrap_err();
            assert_eq!(said, format!("`{text}` {what}: a whole number from 1 to {} is expected", u64::MAX));
        }
        assert!(whole_u32("4294967296").unwrap_err().contains("from 0 to 4294967295"));
    }
}
