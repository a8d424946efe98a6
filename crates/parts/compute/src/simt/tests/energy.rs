//! Energy, against the cycles that multiprocessors count.

use super::*;
use crate::simt::GpuEnergySpec;
use config::StatePower;
use config::units::Power;

/// Two multiprocessors of 2 W, 5 W in cycles of a nanosecond in which they issue; 30 W beside them. Eight warps of six instructions issue
/// for 48 cycles, two at a time as it comes.
#[test]
fn cycles_with_an_instruction_cost_more() {
    let watts = |watts: u64| Power::new(watts * 1_000_000);
    let energy =
        GpuEnergySpec { multiprocessor: StatePower { idle: watts(2), busy: watts(5) }, chip_on: watts(30) };
    let spec = GpuSpec { sms: 2, energy: Some(energy), ..small() };
    let apps = || vec![vec![kernel(4, 2, |_, _| vec![alu().times(5), alu()])]];
    let world = run(&spec, apps());
    let now = Time::from_ns(200);
    assert!(world.outside.now() < now);
    let energy = world.gpu.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    let busy: u64 = world.gpu.stats.sms.iter().map(|sm| sm.busy).sum();
    // A watt for a nanosecond is a nanojoule.
    let nanojoules = ["multiprocessors on", "multiprocessor issues", "chip on"]
        .map(|name| energy.of(name) / 1_000_000_000);
    assert_eq!(nanojoules, [2 * 2 * 200, 3 * u128::from(busy), 30 * 200]);
    let without = run(&GpuSpec { energy: None, ..spec }, apps());
    assert_eq!(without.issued, world.issued);
    assert_eq!(without.gpu.energy(now), None);
}
