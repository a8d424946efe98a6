//! Energy, against the busy times that the part counts for itself.

use super::*;
use crate::vliw::spec::AcceleratorEnergySpec;
use crate::vliw::testing::power;
use config::StatePower;
use config::units::{Energy, Power};

fn metered(scheduler: AcceleratorScheduling) -> AcceleratorSpec {
    let mut spec = spec(3, scheduler);
    // A byte in a picosecond: memory is never short.
    spec.memory.bandwidth = Bandwidth::new(1_000_000_000_000);
    spec.energy = Some(AcceleratorEnergySpec {
        worker: power(),
        firmware: StatePower { idle: Power::new(100), busy: Power::new(309) },
        memory_transfer: Energy::new(59),
        memory_on: Power::new(250),
        chip_on: Power::new(1_732),
    });
    spec
}

/// Each worker is in one state all the time; what memory and firmware have done costs what it costs.
#[test]
fn energy_is_power_times_what_cores_have_done() {
    for scheduler in AcceleratorScheduling::all_defaults() {
        let name = scheduler.name();
        let spec = metered(scheduler);
        let (part, outside) = run(&spec, &[("atax", 512), ("gemm", 128)], &[(0, 0), (1, 1), (0, 2), (1, 3)]);
        let now = outside.queue.now();
        let energy = part.energy(now).expect("it has a meter");
        assert!(energy.conserves(), "{name}");
        let all = |times: &[Time]| times.iter().map(|time| time.ps()).sum::<u64>();
        let (computes, held) = (all(&part.stats.busy), part.stats.work.ps());
        let of = |power: u64, ps: u64| u128::from(power) * u128::from(ps);
        assert_eq!(energy.of("worker computes"), of(641, computes), "{name}");
        assert_eq!(energy.of("worker waits"), of(209, held - computes), "{name}");
        assert_eq!(energy.of("worker idle"), of(88, 3 * now.ps() - held), "{name}");
        assert_eq!(energy.of("firmware idle"), of(100, 2 * now.ps()), "{name}");
        let firmware = all(&[part.visor.busy(now), part.storengine.busy(now)]);
        assert_eq!(energy.of("firmware works"), of(209, firmware), "{name}");
        assert_eq!(energy.of("memory transfer"), of(59, part.moved), "{name}");
        assert_eq!(energy.of("memory on") + energy.of("chip on"), of(250 + 1_732, now.ps()), "{name}");
    }
}

#[test]
fn a_core_takes_no_less_at_work_than_without() {
    let mut spec = metered(AcceleratorScheduling::inter_static);
    if let Some(energy) = &mut spec.energy {
        energy.firmware.busy = Power::new(99);
    }
    let fault = Accelerator::new(&spec, 4_096).err().expect("99 at work and 100 without");
    assert_eq!(fault.key, "energy.firmware.busy");
}

/// Workers and firmware without work, memory and chip go on.
#[test]
fn energy_is_measured_from_a_reset_on() {
    let spec = metered(AcceleratorScheduling::inter_dynamic);
    let (mut part, outside) = run(&spec, &[("atax", 512)], &[(0, 0)]);
    let now = outside.queue.now();
    part.reset_energy(now);
    let energy = part.energy(now + Time::from_ms(1)).expect("it has a meter");
    assert_eq!(energy.total(), u128::from((3 * 88 + 2 * 100 + 250 + 1_732) * Time::from_ms(1).ps()));
    assert!(energy.conserves());
}
