//! What commands and time cost, by hand.

use super::{Bench, plain, presets, read, row_of, write};
use crate::dram::{DramEnergySpec, DramSpec};
use config::units::{Energy, Power};
use engine::Time;

const COSTS: DramEnergySpec = DramEnergySpec {
    activate: Energy::new(1_001),
    read: Energy::new(53),
    write: Energy::new(71),
    refresh: Energy::new(9_007),
    standby: Power::new(300),
    active: Power::new(500),
};

fn metered(spec: DramSpec) -> DramSpec {
    DramSpec { energy: Some(COSTS), ..spec }
}

/// Two lines of one row, then another row of its bank: two activations; a line of 128 B is two bursts of DDR4. Rows are open from the
/// first activation, which is at once, to the end.
#[test]
fn commands_cost_activations_and_bursts() {
    let spec = metered(plain(presets::ddr4()));
    let mut bench = Bench::new(&spec);
    bench.at(Time::ZERO, read(row_of(&spec, 0, 0)));
    bench.at(Time::ZERO, write(row_of(&spec, 0, 0) + 128));
    bench.at(Time::from_us(1), write(row_of(&spec, 0, 1)));
    bench.run();
    assert_eq!(bench.dram.stats.activations, 2);
    let now = Time::from_us(3);
    let energy = bench.dram.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    let told = ["activate", "read", "write", "refresh", "standby"].map(|name| energy.of(name));
    assert_eq!(told, [2 * 1_001, 2 * 53, 4 * 71, 0, 0]);
    assert_eq!(energy.of("active standby"), 500 * u128::from(now.ps()));
}

/// A refresh each 7.8 us on each of the controllers, at times that are spread; the one of them that has had a command stands with an
/// open row until its refresh is due. What was before a window is not in it.
#[test]
fn refreshes_are_counted_though_nobody_waits_for_them() {
    let spec = metered(DramSpec { controllers: 2, ..presets::ddr4() });
    let refresh = spec.refresh.clone().expect("DDR4 is refreshed");
    let interval = refresh.interval.time();
    let mut bench = Bench::new(&spec);
    bench.at(Time::from_us(1), read(0));
    bench.run();
    // The first controller's refreshes are at multiples of the interval, the second one's half of one earlier.
    let now = interval.times(10) + Time::from_us(1);
    let energy = bench.dram.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    let counts = [now.ps() / interval.ps(), (now.ps() + interval.ps() / 2) / interval.ps()];
    assert_eq!(counts, [10, 10]);
    assert_eq!(energy.of("refresh"), 20 * 9_007);
    let owner = u64::from(bench.dram.controller_of(0));
    let due = interval - Time::from_ps(interval.ps() / 2 * owner);
    let open = due - Time::from_us(1);
    assert_eq!(energy.of("active standby"), 500 * u128::from(open.ps()));
    assert_eq!(energy.of("standby"), 300 * u128::from(2 * now.ps() - open.ps()));

    bench.dram.reset_stats(now);
    let later = bench.dram.energy(now + interval).expect("it has a meter");
    assert_eq!((later.of("refresh"), later.of("activate")), (2 * 9_007, 0));
    assert_eq!(later.of("standby"), 300 * 2 * u128::from(interval.ps()));
}

/// The same commands take the same time with a meter; without one nothing is told.
#[test]
fn a_meter_changes_no_time() {
    let ends = |spec: &DramSpec| {
        let mut bench = Bench::new(spec);
        for n in 0..200 {
            bench.at(Time::from_ns(37 * n), if n % 3 == 0 { write(n * 4_160) } else { read(n * 8_256) });
        }
        let ends = bench.run();
        assert_eq!(bench.dram.energy(Time::from_us(9)).is_some(), spec.energy.is_some());
        ends
    };
    assert_eq!(ends(&presets::ddr4()), ends(&metered(presets::ddr4())));
}
