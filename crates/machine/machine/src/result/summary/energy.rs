//! What was spent as a person likes to read it.

use super::super::energy::{EnergyResult, PartEnergy, TotalEnergy};
use super::time;
use std::fmt::Write;

/// Activities of a part that a page lists: those that take most.
const ACTIVITIES: usize = 4;

/// What the parts spent.
pub(super) fn energy(of: &EnergyResult, text: &mut String) {
    let measured = time(of.measured_ns);
    match &of.total {
        Some(total) => {
            let _ = writeln!(
                text,
                "\n  energy: {} in {measured}, {:.2} W on the mean, {:.2} W at most; {:.1} kWh in a year{}",
                joules(total.energy_j),
                total.power_w_mean,
                total.power_w_max,
                total.year_kwh,
                served(total)
            );
        }
        None => {
            let missing = of.missing.join(", ");
            let _ = writeln!(text, "\n  energy in {measured}: no total, nothing is known of {missing}");
        }
    }
    of.parts.iter().for_each(|of| part(of, text));
}

/// What it comes to for each that was served.
fn served(total: &TotalEnergy) -> String {
    let of = [
        (total.request_j, "a request"),
        (total.call_j, "a system call"),
        (total.job_j, "a job"),
        (total.instruction_j, "an instruction"),
        (total.warp_instruction_j, "a warp instruction"),
        (total.kernel_j, "a kernel"),
    ];
    of.into_iter().filter_map(|(each, what)| Some(format!("; {} {what}", joules(each?)))).collect()
}

fn part(of: &PartEnergy, text: &mut String) {
    let mut activities: Vec<_> = of.activities.iter().filter(|each| each.energy_j > 0.0).collect();
    activities.sort_by(|a, b| b.energy_j.total_cmp(&a.energy_j));
    let list: Vec<String> = activities
        .iter()
        .take(ACTIVITIES)
        .map(|each| format!("{} {:.0} %", each.activity, 100.0 * each.energy_j / of.energy_j))
        .collect();
    let _ = writeln!(
        text,
        "  {:<20}{:>11}{:>10.2} W  {}",
        of.name,
        joules(of.energy_j),
        of.power_w_mean,
        list.join(", ")
    );
}

/// Joules in the unit that reads best.
fn joules(energy: f64) -> String {
    let units = [(1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ"), (1e-9, "nJ")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| energy >= *scale).unwrap_or((1e-12, "pJ"));
    format!("{:.2} {unit}", energy / scale)
}
