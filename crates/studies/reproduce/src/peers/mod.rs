//! Values measured with other simulators, beside ours.
//!
//! A row of the family `gap` is a difference that is known and explained: it fails when the gap closes.

mod amplification;
mod reads;
mod traces;

use super::Case;
use config::Diagnostic;

/// Every case.
pub(super) fn cases() -> Vec<Case> {
    [
        reads::limit_cases(),
        reads::cases(),
        traces::cases(),
        amplification::cases(),
        amplification::collection_cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

// Measurements with MQSim: a committed table.

const TABLE: &str = include_str!("../../../../../tests/differential/mqsim.csv");

/// Path and description of the table.
const PLACE: &str = "tests/differential/mqsim.csv, MQSim at 7ec40e3";

/// The value of a metric of a workload on a device.
///
/// # Errors
/// A figure that the table does not have.
fn figure(workload: &str, device: &str, metric: &str) -> Result<f64, Diagnostic> {
    let name = format!("{workload},{device},{metric},");
    let value = TABLE.lines().find_map(|line| line.strip_prefix(&name)?.split(',').next()?.parse().ok());
    value.ok_or_else(|| Diagnostic::new(format!("no figure `{workload},{device},{metric}` in {PLACE}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_figure_and_no_two_are_of_one_name() {
        let lines: Vec<&str> = TABLE.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines[0], "workload,device,metric,value,unit");
        let mut names: Vec<[&str; 3]> = lines[1..]
            .iter()
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                assert_eq!(cells.len(), 5, "{line}");
                assert!(cells[3].parse::<f64>().is_ok(), "{line}");
                let name = [cells[0], cells[1], cells[2]];
                assert_eq!(figure(name[0], name[1], name[2]).ok(), cells[3].parse().ok());
                name
            })
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(figure("none", "D16", "waf").is_err());
    }
}
