//! Converts a flow to an fio job, or to a trace with its options.

use super::drive::{Flow, SECTOR};
use crate::spec::decimal;
use config::Diagnostic;
use std::fmt::Write as _;

/// Workload of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// fio job.
    Job {
        /// Name of the job.
        name: String,
        /// Options with their values.
        options: Vec<(&'static str, String)>,
    },
    /// Trace.
    Trace {
        /// Path, as in the file.
        path: String,
        /// Share that is replayed, in percent.
        percent: u64,
    },
}

impl Work {
    /// Job on one line, in the form of `--workload`; for a trace, its path.
    pub fn workload(&self) -> String {
        match self {
            Work::Job { name, options } => {
                let options: Vec<String> =
                    options.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("fio:name={name},{}", options.join(","))
            }
            Work::Trace { path, .. } => path.clone(),
        }
    }
}

/// Job file of the jobs among the flows; `None` without any.
pub fn job_file(works: &[Work]) -> Option<String> {
    let mut text = String::new();
    for work in works {
        if let Work::Job { name, options } = work {
            let _ = writeln!(text, "{}[{name}]", if text.is_empty() { "" } else { "\n" });
            options.iter().for_each(|(key, value)| {
                let _ = writeln!(text, "{key}={value}");
            });
        }
    }
    // Flows share the drive: without a device, each job would get a file of its own.
    (!text.is_empty()).then(|| format!("[global]\nfilename=/dev/nvme0n1\ndirect=1\n\n{text}"))
}

/// Converts a flow; `number` is its index in the scenario.
///
/// # Errors
/// The flow never ends, or issues no requests.
pub(super) fn work(
    flow: &Flow,
    number: usize,
    depth: u64,
    remarks: &mut Vec<String>,
) -> Result<Work, Diagnostic> {
    let name = format!("flow{number}");
    let values = &flow.values;
    if flow.is_trace {
        let path = values.text("File_Path").to_owned();
        if path.is_empty() {
            return Err(
                Diagnostic::new("the flow has no trace: `File_Path` is missing").at(flow.place.clone())
            );
        }
        let replays = values.whole("Relay_Count");
        let percent = if replays == 1 { values.whole("Percentage_To_Be_Executed") } else { 100 };
        if replays > 1 {
            remarks.push(format!("{name}: Relay_Count: the trace is replayed once, not {replays} times"));
        }
        if values.word("Time_Unit") != "NANOSECOND" {
            remarks.push(format!(
                "{name}: Time_Unit: MQSim reads it but treats times as ns; `--time-unit us` overrides that"
            ));
        }
        return Ok(Work::Trace { path, percent });
    }
    let mut options = pattern(flow, &name, remarks);
    options.extend(pace(flow, depth, &name, remarks)?);
    Ok(Work::Job { name, options })
}

/// Options on the requests: kind, size, place.
fn pattern(flow: &Flow, name: &str, remarks: &mut Vec<String>) -> Vec<(&'static str, String)> {
    let values = &flow.values;
    let reads = values.whole("Read_Percentage");
    let random = values.word("Address_Distribution") != "STREAMING";
    let sectors = values.whole("Average_Request_Size");
    let aligned = values.flag("Generated_Aligned_Addresses");
    let unit = if aligned { values.whole("Address_Alignment_Unit") } else { 1 };
    let kind = match (reads, random) {
        (100, true) => "randread",
        (0, true) => "randwrite",
        (_, true) => "randrw",
        (100, false) => "read",
        (0, false) => "write",
        (_, false) => "rw",
    };
    // Gap that a stream skips to begin on a boundary again.
    let gap = (unit - sectors % unit) % unit;
    let rw = if !random && gap > 0 { format!("{kind}:{}", gap * SECTOR) } else { kind.to_owned() };
    let mut options = vec![("rw", rw)];
    if !matches!(reads, 0 | 100) {
        options.push(("rwmixread", reads.to_string()));
    }
    options.push(sizes(flow, sectors, name, remarks));
    if random {
        options.push(("norandommap", "1".to_owned()));
        options.push(("blockalign", (unit * SECTOR).to_string()));
    } else {
        remarks.push(format!(
            "{name}: STREAMING begins at the first address of its region here, at a random address in MQSim"
        ));
    }
    let hot = values.whole("Percentage_of_Hot_Region");
    if values.word("Address_Distribution") == "RANDOM_HOTCOLD" && (1..100).contains(&hot) {
        let cold = 100 - hot;
        options.push(("random_distribution", format!("zoned:{cold}/{hot}:{hot}/{cold}")));
    }
    let part = match values.whole("Working_Set_Percentage") {
        0 => 100,
        percent => percent,
    };
    let least = (sectors.next_multiple_of(unit) * SECTOR).max(SECTOR);
    let asked = (u128::from(flow.bytes) * u128::from(part) / 100) as u64;
    let size = (asked / least * least).max(least);
    options.push(("offset", flow.first.to_string()));
    options.push(("size", size.to_string()));
    options.push(("randseed", values.whole("Seed").to_string()));
    options
}

fn sizes(flow: &Flow, sectors: u64, name: &str, remarks: &mut Vec<String>) -> (&'static str, String) {
    let spread = flow.values.whole("Variance_Request_Size");
    if flow.values.word("Request_Size_Distribution") != "NORMAL" || spread == 0 {
        return ("bs", (sectors * SECTOR).to_string());
    }
    remarks.push(format!("{name}: NORMAL: ten equally likely sizes, the tenths of the distribution, rounded up to sectors as in MQSim"));
    // Middles of the tenths of the normal distribution, in standard deviations.
    const TENTHS: [f64; 10] =
        [-1.6449, -1.0364, -0.6745, -0.3853, -0.1257, 0.1257, 0.3853, 0.6745, 1.0364, 1.6449];
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for tenth in TENTHS {
        let size = libm::ceil(sectors as f64 + tenth * spread as f64).max(1.0) as u64;
        match counts.last_mut() {
            Some((last, share)) if *last == size => *share += 10,
            _ => counts.push((size, 10)),
        }
    }
    let parts: Vec<String> =
        counts.iter().map(|(size, share)| format!("{}/{share}", size * SECTOR)).collect();
    ("bssplit", parts.join(":"))
}

/// Options on the arrival of requests, and on the end.
fn pace(
    flow: &Flow,
    depth: u64,
    name: &str,
    remarks: &mut Vec<String>,
) -> Result<Vec<(&'static str, String)>, Diagnostic> {
    let values = &flow.values;
    let sectors = values.whole("Average_Request_Size");
    let mut options = vec![("ioengine", "libaio".to_owned())];
    if values.word("Synthetic_Generator_Type") == "BANDWIDTH" {
        let rate = values.whole("Bandwidth") / SECTOR / sectors;
        if rate == 0 {
            let help = "MQSim divides by zero and ends, or never issues a request: `Bandwidth` is bytes per second, at least one request";
            return Err(Diagnostic::new(format!(
                "`Bandwidth` is {}: less than one request per second",
                values.whole("Bandwidth")
            ))
            .at(flow.place.clone())
            .help(help));
        }
        let reads = values.whole("Read_Percentage");
        let part = |percent: u64| (rate * percent / 100).max(1);
        let rates = if matches!(reads, 0 | 100) {
            rate.to_string()
        } else {
            format!("{},{}", part(reads), part(100 - reads))
        };
        options.push(("iodepth", depth.to_string()));
        options.push(("rate_iops", rates));
        options.push(("rate_process", "poisson".to_owned()));
    } else {
        options.push(("iodepth", values.whole("Average_No_of_Reqs_in_Queue").to_string()));
    }
    let (stop, total) = (values.whole("Stop_Time"), values.whole("Total_Requests_To_Generate"));
    if stop > 0 {
        let us = stop.div_ceil(1000);
        let time = if us % 1_000_000 == 0 { format!("{}s", us / 1_000_000) } else { format!("{us}us") };
        options.push(("time_based", "1".to_owned()));
        options.push(("runtime", time));
        if total > 0 {
            remarks.push(format!(
                "{name}: Total_Requests_To_Generate has no effect in MQSim while Stop_Time is {} s",
                decimal(stop as f64 / 1e9)
            ));
        }
    } else if total > 0 {
        options.push(("number_ios", total.to_string()));
        // The byte limit never ends it first.
        let largest = sectors + 2 * values.whole("Variance_Request_Size");
        options.push(("io_size", total.saturating_mul(largest * SECTOR).min(1 << 62).to_string()));
    } else {
        let help = "`Stop_Time` in ns, or `Total_Requests_To_Generate`, must be above zero";
        return Err(Diagnostic::new(
            "the flow has no end: neither a time nor a number of requests limits it",
        )
        .at(flow.place.clone())
        .help(help));
    }
    Ok(options)
}
