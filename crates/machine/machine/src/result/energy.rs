//! Energy of the components, and energy per unit of work.

use super::Document;
use crate::machine::Machine;
use crate::parts::bill::Spender;
use engine::Time;
use schemars::JsonSchema;
use serde::Serialize;
use ssd::Check;
use stats::{ActivityEnergy, Attojoules, EnergyReport, PowerWindow, joules};

/// Most windows of the power series.
const WINDOWS: usize = 256;
/// Hours in a year of 365 days.
const HOURS: f64 = 8_760.0;

/// Energy of the measured window, from its beginning to the end of the run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EnergyResult {
    /// Duration of the measured window.
    pub measured_ns: f64,
    /// Components with energy constants in the spec.
    pub parts: Vec<PartEnergy>,
    /// Components without energy constants; with any of them, no total is reported.
    pub missing: Vec<String>,
    /// Total of all components; left out if any has no energy constants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<TotalEnergy>,
}

/// Energy of a component.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PartEnergy {
    /// Name of the component in the system.
    pub name: String,
    /// Total energy.
    pub energy_j: f64,
    /// Mean power.
    pub power_w_mean: f64,
    /// Greatest mean power of a window. Windows are 10 us, or longer if the run does not fit into 1,024 of them.
    pub power_w_max: f64,
    /// Energy by activity.
    pub activities: Vec<ActivityEnergy>,
}

/// Energy of all components, and energy per unit of work. Kinds of work that were not done are left out; each kind is
/// charged all of the energy.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TotalEnergy {
    /// Total energy.
    pub energy_j: f64,
    /// Mean power.
    pub power_w_mean: f64,
    /// Greatest mean power of a window. Windows are 10 us, or longer if the run does not fit into 1,024 of them.
    pub power_w_max: f64,
    /// Energy of a year of 365 days at this load.
    pub year_kwh: f64,
    /// Energy per completed request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_j: Option<f64>,
    /// Energy per system call of a host's programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_j: Option<f64>,
    /// Energy per job of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_j: Option<f64>,
    /// Energy per instruction of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_j: Option<f64>,
    /// Energy per warp instruction issued by GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warp_instruction_j: Option<f64>,
    /// Energy per completed kernel of accelerators and coprocessors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_j: Option<f64>,
    /// Power over time: at most 256 windows that tile the measured window. The sum of power times width is the energy.
    pub power_series: Vec<PowerWindow>,
}

/// Work done in the measured window.
pub(super) struct Served {
    requests: u64,
    calls: u64,
    jobs: u64,
    instructions: u64,
    warp_instructions: u64,
    kernels: u64,
}

impl Served {
    /// Reads the amounts of work from the document.
    pub(super) fn of(document: &Document, machine: &Machine) -> Served {
        let over = |over: Time| over > machine.measured_from;
        let kernels = machine.governed().iter().flat_map(|at| &at.accelerator.stats.kernels);
        let offloaded = machine.driven().iter().flat_map(|at| at.executed(machine.hosts()));
        let offloaded = offloaded.filter(|one| one.ended.is_some_and(over));
        Served {
            requests: document.io.kinds.all.requests,
            calls: document.host.iter().flat_map(|host| &host.programs).map(|program| program.calls).sum(),
            jobs: document.cpu.iter().map(|cpu| cpu.jobs).sum(),
            instructions: document.cpu.iter().map(|cpu| cpu.instructions).sum(),
            warp_instructions: document.gpu.iter().map(|gpu| gpu.work.warp_instructions).sum(),
            kernels: kernels.filter(|times| over(times.over)).count() as u64 + offloaded.count() as u64,
        }
    }
}

/// Sum of all known energies.
fn sum(spenders: &[Spender]) -> Option<EnergyReport> {
    let mut known = spenders.iter().filter_map(|of| of.energy.as_ref());
    let mut sum = known.next()?.clone();
    known.for_each(|one| sum.add(one));
    Some(sum)
}

impl EnergyResult {
    /// Collects the energy of the components; `None` if no component reports energy.
    pub(super) fn collect(spenders: &[Spender], served: &Served, measured: Time) -> Option<EnergyResult> {
        let sum = sum(spenders)?;
        let part = |of: &Spender| {
            let energy = of.energy.as_ref()?;
            Some(PartEnergy {
                name: of.name.clone(),
                energy_j: joules(energy.total()),
                power_w_mean: energy.series.mean_w(),
                power_w_max: energy.series.peak_w(),
                activities: energy.by_activity(),
            })
        };
        let unknown = spenders.iter().filter(|of| of.energy.is_none());
        let missing: Vec<String> = unknown.map(|of| of.name.clone()).collect();
        Some(EnergyResult {
            measured_ns: measured.as_ns_f64(),
            parts: spenders.iter().filter_map(part).collect(),
            total: missing.is_empty().then(|| TotalEnergy::of(sum, served)),
            missing,
        })
    }
}

impl TotalEnergy {
    fn of(sum: EnergyReport, served: &Served) -> TotalEnergy {
        let (energy_j, power_w_mean) = (joules(sum.total()), sum.series.mean_w());
        let each = |count: u64| (count > 0).then(|| energy_j / count as f64);
        TotalEnergy {
            energy_j,
            power_w_mean,
            power_w_max: sum.series.peak_w(),
            year_kwh: power_w_mean * HOURS / 1e3,
            request_j: each(served.requests),
            call_j: each(served.calls),
            job_j: each(served.jobs),
            instruction_j: each(served.instructions),
            warp_instruction_j: each(served.warp_instructions),
            kernel_j: each(served.kernels),
            power_series: sum.series.at_most(WINDOWS).windows().collect(),
        }
    }
}

/// Checks that energy is conserved, to the attojoule; empty if no component reports energy.
pub(super) fn checks(spenders: &[Spender]) -> Vec<Check> {
    let Some(sum) = sum(spenders) else { return Vec::new() };
    let known = || spenders.iter().filter_map(|of| Some((&of.name, of.energy.as_ref()?)));
    let wrong: Vec<String> = known()
        .filter(|(_, energy)| !energy.conserves())
        .map(|(name, energy)| {
            let (by_activity, over_time) = (energy.total(), energy.series.total());
            format!("{name}: {by_activity} aJ by activity, {over_time} aJ over time")
        })
        .collect();
    let parts: Attojoules = known().map(|(_, energy)| energy.total()).sum();
    let (total, shown) = (sum.total(), sum.series.clone().at_most(WINDOWS).total());
    vec![
        Check {
            name: "a part spends by activity what it spends over time",
            ok: wrong.is_empty(),
            detail: wrong.join("; "),
        },
        Check {
            name: "the energy of all parts is the total, and that of the power series",
            ok: parts == total && total == shown,
            detail: format!("{parts} aJ of parts, {total} aJ in all, {shown} aJ over time"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::{Activity, Meter};

    const ACTIVITIES: [Activity; 2] = [Activity::operation("read"), Activity::state("on")];
    const NOTHING: Served =
        Served { requests: 0, calls: 0, jobs: 0, instructions: 0, warp_instructions: 0, kernels: 0 };

    /// Two watts for 20 ms, and half a millijoule at half of it.
    fn spender(name: &str) -> Spender {
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(1, Time::ZERO, 2_000_000);
        meter.spend(0, Time::from_ms(10), 500_000_000_000_000);
        Spender { name: name.to_owned(), energy: Some(meter.report(Time::from_ms(20))) }
    }

    fn collect(spenders: &[Spender], served: &Served) -> Option<EnergyResult> {
        EnergyResult::collect(spenders, served, Time::from_ms(20))
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let served = Served { requests: 100, kernels: 3, ..NOTHING };
        let spenders = [spender("a"), spender("b")];
        assert!(checks(&spenders).iter().all(|check| check.ok));
        let found = collect(&spenders, &served).expect("both tell");
        assert_eq!(found.measured_ns, 20e6);
        assert_eq!(found.parts.iter().map(|part| part.energy_j).collect::<Vec<_>>(), [0.0405, 0.0405]);
        let total = found.total.expect("all tell");
        // 81 mJ in 20 ms are 4.05 W, which are 35.478 kWh in 8,760 hours.
        assert_eq!((total.energy_j, total.power_w_mean), (0.081, 4.05));
        assert!((total.year_kwh - 35.478).abs() < 1e-9);
        assert_eq!((total.request_j, total.kernel_j), (Some(0.081 / 100.0), Some(0.081 / 3.0)));
        assert_eq!((total.job_j, total.call_j, total.warp_instruction_j), (None, None, None));
        assert_eq!(total.power_series.len(), 250);
        let integral: f64 = total.power_series.iter().map(|w| w.power_w * w.width_ns * 1e-9).sum();
        assert!((integral - 0.081).abs() < 1e-12, "{integral}");
    }

    #[test]
    fn what_one_part_does_not_tell_nobody_knows_of_all() {
        let silent = || Spender { name: "c".to_owned(), energy: None };
        let found = collect(&[spender("a"), silent()], &NOTHING).expect("one tells");
        assert_eq!((found.missing, found.total.is_none()), (vec!["c".to_owned()], true));
        assert!(collect(&[silent()], &NOTHING).is_none());
        assert!(checks(&[silent()]).is_empty());
    }
}
