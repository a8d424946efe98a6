//! Names of a result document as words.

use super::rules::Kernel;
use serde_json::Value;

/// Parts by name, the largest first; of equals as they come.
pub(super) fn parts(of: &Value) -> Vec<(&str, f64)> {
    let all = of.as_object().into_iter().flatten();
    let mut parts: Vec<(&str, f64)> =
        all.filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?))).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

/// A share.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p >= 9.95 || p == 0.0 => format!("{p:.0} %"),
        p if p >= 0.995 => format!("{p:.1} %").replace(".0 %", " %"),
        p => format!("{p:.2} %").replace("0 %", " %"),
    }
}

/// Nanoseconds in the unit that reads best.
pub(super) fn time(ns: f64) -> String {
    match ns {
        n if n >= 1e9 => format!("{:.3} s", n / 1e9),
        n if n >= 1e6 => format!("{:.2} ms", n / 1e6),
        n if n >= 1e3 => format!("{:.2} us", n / 1e3),
        n => format!("{n:.0} ns"),
    }
}

/// Where a milestone is waited for; one that has no words of its own stands for itself.
pub(super) fn milestone(name: &str) -> String {
    let words = match name {
        "submission" => "in submission queues",
        "controller" => "at controller cores",
        "host_transfer" => "on the host's link",
        "mapping" => "waiting for the mapping table",
        "buffer" => "waiting for the buffer",
        "merge" => "waiting for old data of units written in part",
        "space" => "waiting for free space",
        "die_wait" => "waiting for dies",
        "array" => "in the array",
        "channel_wait" => "waiting for channels",
        "channel" => "moving over channels",
        "durable" => "waiting for what was written before",
        "host" => "at the host",
        "stripe" => "waiting for other drives of a stripe",
        other => return format!("in {}", other.replace('_', " ")),
    };
    words.to_owned()
}

/// In which phase of a coprocessor's kernels; one that has no words of its own stands for itself.
pub(super) fn phase(name: &str) -> String {
    let words = match name {
        "files" => "opening and closing files",
        "read" => "reading files",
        "marshal" => "bringing data into order",
        "copy" => "copying data to the driver",
        "send" => "sending data",
        "work" => "being executed",
        "receive" => "receiving results",
        "write" => "writing files",
        "sync" => "making results durable",
        other => return format!("in {other}"),
    };
    words.to_owned()
}

/// In which phase of an accelerator's kernels.
pub(super) fn kernel(phase: Kernel) -> String {
    let words = match phase {
        Kernel::Offloaded => "being offloaded",
        Kernel::Queued => "waiting for cores",
        Kernel::Computes => "computing",
        Kernel::Stalls => "waiting for caches",
        Kernel::Waits => "waiting for data and other cores",
        Kernel::Writes => "writing results to flash",
    };
    words.to_owned()
}

/// Behind whom.
pub(super) fn holder(name: &str) -> &str {
    match name {
        "host_read" => "behind other reads",
        "host_program" => "behind programs of the host's data",
        "collection_read" => "behind reads of collection",
        "collection_program" => "behind programs of collection",
        "erase" => "behind erases",
        "mapping" => "behind the mapping table's reads and programs",
        "look_ahead" => "behind reads ahead",
        "channel" => "for a channel while the die is free",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn shares_have_two_digits_that_count() {
        let said = [1.0, 0.123, 0.05, 0.012, 0.01, 0.001, 0.0001, 0.0];
        assert_eq!(said.map(percent), ["100 %", "12 %", "5 %", "1.2 %", "1 %", "0.1 %", "0.01 %", "0 %"]);
    }
}
