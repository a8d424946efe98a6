//! Energy, against the slots that cores count.

use super::*;
use config::StatePower;
use config::units::Power;

/// Two cores of 3 W at work and 1 W else, 7 W beside them, at half load: a core is at work in all slots but those that are idle.
#[test]
fn cores_cost_more_while_they_have_something_to_run() {
    let watts = |watts: u64| Power::new(watts * 1_000_000);
    let mut spec = spec();
    spec.cores = 2;
    spec.energy =
        Some(CpuEnergySpec { core: StatePower { idle: watts(1), busy: watts(3) }, chip_on: watts(7) });
    spec.load = LoadSpec {
        jobs: 300,
        arrivals: Arrivals::poisson(Poisson { interval: Duration::new(Time::from_us(10)) }),
    };
    let ops = || Script::new(vec![op(OpKind::Chain, 5000, [0, 0], 0)]);
    let (cores, end) = run(&spec, &mut ops(), &mut Memory::default());
    let energy = cores.energy(end).expect("it has a meter");
    assert!(energy.conserves());
    // A watt for a nanosecond is a nanojoule; a cycle has four slots.
    let idle = cores.stats().spent[Spent::Idle as usize] as f64 / 4.0;
    let nanojoules = |name| energy.of(name) as f64 / 1e9;
    assert_eq!(
        (nanojoules("cores on"), nanojoules("chip on")),
        (2.0 * end.ns() as f64, 7.0 * end.ns() as f64)
    );
    let expected = 2.0 * (2.0 * end.ns() as f64 - idle);
    assert!(idle > 0.0 && (nanojoules("core at work") - expected).abs() < 1.0, "{energy:?}");
    let without = run(&CpuSpec { energy: None, ..spec }, &mut ops(), &mut Memory::default());
    assert_eq!((without.1, without.0.energy(end)), (end, None));
}
