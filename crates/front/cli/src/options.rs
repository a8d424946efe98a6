//! Options shared by several commands: the system and how it runs, how traces are read, and whole numbers. A bad
//! number gets a diagnostic about its value.

use crate::complete;
use crate::output::Fault;
use config::units::Duration;
use config::{Diagnostic, Place};
use engine::Time;
use machine::plan::shrink::shrink;
use machine::run::Plan;
use requests::trace::{Remap, TraceOptions};
use sweep::{TraceText, warmup};

/// System, and how workloads run on it.
#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    /// Shipped system or TOML file
    #[arg(add = clap_complete::ArgValueCompleter::new(complete::systems))]
    pub(crate) system: String,
    /// Override a spec value (key.path=value); repeatable
    #[arg(long, add = clap_complete::ArgValueCompleter::new(complete::settings))]
    set: Vec<String>,
    /// Simulate this part of each drive, such as 1/16, with the ratios that decide its aged state (docs/shrink.md)
    #[arg(long, value_name = "PART", value_parser = part)]
    scale: Option<u64>,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1, value_parser = whole)]
    seed: u64,
    /// Device state before the run (none, sequential, steady:share=90%, ...); overrides the spec
    #[arg(long)]
    precondition: Option<String>,
    /// Exclude the first N completed requests, or all that complete before a simulated time (5000, 10ms); a run that
    /// ends earlier fails a check
    #[arg(long)]
    warmup: Option<String>,
    /// Trace options
    #[command(flatten)]
    trace: TraceArgs,
    /// Replay traces at this queue depth (at least 1), ignoring their recorded times
    #[arg(long, value_parser = whole_u32, help_heading = "Traces")]
    queue_depth: Option<u32>,
}

impl PlanArgs {
    /// System as given on the command line.
    pub(crate) fn system(&self) -> &str {
        &self.system
    }

    /// Option values that may name files.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = &String> {
        self.set.iter().chain(&self.precondition)
    }

    /// Builds the plan for these workloads.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn plan(&self, workloads: &[String]) -> Result<Plan, Diagnostic> {
        let mut set = self.set.clone();
        set.extend(self.shrunk()?);
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

    /// Overrides of `--scale`, behind those of `--set`. A note says what they are.
    fn shrunk(&self) -> Result<Vec<String>, Diagnostic> {
        let Some(by) = self.scale else { return Ok(Vec::new()) };
        let plan = Plan { set: self.set.clone(), ..Plan::new(&self.system, "") };
        let all = shrink(&plan, by)?;
        for drive in &all {
            tell!("note: --scale 1/{by}: {}", drive.set.join(", "));
            if let Some(note) = &drive.note {
                tell!("note: {}: {note}", drive.drive);
            }
        }
        Ok(all.into_iter().flat_map(|drive| drive.set).collect())
    }

    /// Converts the state of `--precondition` into overrides, one for each table of drives.
    fn state(&self) -> Result<Option<Vec<String>>, Diagnostic> {
        let Some(text) = self.precondition.as_deref() else { return Ok(None) };
        let plan = Plan { set: self.set.clone(), ..Plan::new(&self.system, "") };
        plan.overrides_of_state(text).map(Some)
    }

    /// Moves a fault of the state from the generated override to what the user wrote.
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

/// The divisor of a part such as `1/16`.
fn part(text: &str) -> Result<u64, String> {
    let divisor = text.strip_prefix("1/").and_then(|divisor| divisor.parse().ok());
    divisor.ok_or_else(|| "a part is 1/N, with N a power of two: 1/16".to_owned())
}

/// Options of reading traces.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Trace format; detected from content if left out
    #[arg(long, help_heading = "Traces")]
    format: Option<String>,
    /// Columns of a table from left to right, such as time_us,op,lba_512,size_bytes; `-` skips one
    #[arg(long, value_name = "NAMES", help_heading = "Traces")]
    columns: Option<String>,
    /// Unit of trace times (s, ms, us, 100ns, ns, ps)
    #[arg(long, help_heading = "Traces")]
    time_unit: Option<String>,
    /// Address unit of the trace, in bytes
    #[arg(long, value_parser = whole, help_heading = "Traces")]
    sector: Option<u64>,
    /// Multiply every time by this factor (0.5 is twice as fast)
    #[arg(long, help_heading = "Traces")]
    time_scale: Option<String>,
    /// Drop requests before this time, counted from the first request of all traces; may exceed the simulated clock
    /// (300d)
    #[arg(long, help_heading = "Traces")]
    start: Option<String>,
    /// Drop requests from this time on, counted from the first request of all traces
    #[arg(long, help_heading = "Traces")]
    end: Option<String>,
    /// Read at most this many requests
    #[arg(long, value_parser = whole, help_heading = "Traces")]
    max_requests: Option<u64>,
    /// Skip and count malformed lines
    #[arg(long, help_heading = "Traces")]
    pub(crate) lenient: bool,
    /// Handling of requests beyond the device: fit (default of `run`: as recorded if all fit, else compact), error,
    /// wrap or compact; counted and reported
    #[arg(long, help_heading = "Traces")]
    remap: Option<String>,
    /// Time zero of several traces: clock (default: first request of all, which keeps offsets) or start (first request
    /// of each)
    #[arg(long, help_heading = "Traces")]
    align: Option<String>,
    /// Address spaces of traces: apart (default: one for each file and each stream in it) or one (a single volume)
    #[arg(long, help_heading = "Traces")]
    volumes: Option<String>,
    /// blkparse event that marks a request (D, Q, ...)
    #[arg(long, help_heading = "Traces")]
    action: Option<String>,
    /// Number of requests buffered to sort an unsorted trace
    #[arg(long, value_parser = count_in_memory, help_heading = "Traces")]
    sort_window: Option<usize>,
}

impl TraceArgs {
    /// Builds the reader's options; `remap` is the default handling of requests beyond the device.
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

/// Builds the fault for the value of an option.
pub(crate) fn at(option: &str, text: &str, fault: Diagnostic) -> Diagnostic {
    fault.at(Place { source: option.to_owned(), text: text.to_owned(), ..Place::default() })
}

/// Reads a time such as `10ms`.
///
/// # Errors
/// The text is not a time.
pub(crate) fn time(text: &str) -> Result<Time, Diagnostic> {
    text.parse::<Duration>().map(|d| d.time())
}

/// Reads a whole number for clap.
///
/// # Errors
/// A message that says what is wrong with the text and what is allowed.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    between(text, 0, u64::MAX)
}

/// Reads a whole number up to 2^63 - 1, the largest that TOML can hold; see [`whole`].
///
/// # Errors
/// As [`whole`].
pub(crate) fn whole_i63(text: &str) -> Result<u64, String> {
    between(text, 0, i64::MAX as u64)
}

/// Reads a whole number from 1; see [`whole`].
///
/// # Errors
/// As [`whole`].
pub(crate) fn from_one(text: &str) -> Result<u64, String> {
    between(text, 1, u64::MAX)
}

/// Reads a whole number up to 2^32 - 1; see [`whole`].
///
/// # Errors
/// As [`whole`].
pub(crate) fn whole_u32(text: &str) -> Result<u32, String> {
    between(text, 0, u32::MAX.into()).map(|n| n as u32)
}

/// Reads a whole number that counts items in memory; see [`whole`].
///
/// # Errors
/// As [`whole`].
pub(crate) fn count_in_memory(text: &str) -> Result<usize, String> {
    between(text, 0, u32::MAX.into()).map(|n| n as usize)
}

/// Reads a number of parallel jobs, from 1; see [`whole`].
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
