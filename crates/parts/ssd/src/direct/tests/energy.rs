//! Energy, against what the part counts for itself.

use crate::direct::testing::{ALL, Rig, small};
use crate::direct::{DirectEnergySpec, DirectSpec};
use config::StatePower;
use config::units::{Energy, Power};
use engine::{Rng, Time};

fn metered() -> DirectSpec {
    let power = Power::new;
    let energy = DirectEnergySpec {
        read: Energy::new(1_003),
        program: Energy::new(90_001),
        erase: Energy::new(400_009),
        transfer: Energy::new(37),
        plane: StatePower { idle: power(500), busy: power(1_700) },
        controllers_on: power(2_000),
    };
    DirectSpec { energy: Some(energy), ..small() }
}

/// Whole and partial writes over few pages, and reads between them: pages leave their registers, log blocks fill up and are merged.
#[test]
fn arrays_and_network_cost_what_they_do() {
    let (mut rig, mut rng) = (Rig::new(&metered()), Rng::stream(3, "direct/energy"));
    for n in 0..3_000 {
        let page = rig.page((n % 4) as u32, rng.below(8) as u32, rng.below(8) as u32);
        let lines = if rng.below(3) == 0 { ALL } else { 1 << rng.below(32) };
        rig.send(rng.below(3) > 0, page, lines, 0);
        for _ in 0..rng.below(40) {
            rig.step();
        }
    }
    while rig.step() {}
    let (now, stats) = (rig.now(), &rig.direct.stats);
    let energy = rig.direct.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    assert!(stats.erases > 0 && stats.fill_reads > 0 && stats.gc_programs > 0, "{stats:?}");
    assert_eq!(energy.of("read"), u128::from(1_003 * stats.senses()));
    assert_eq!(energy.of("program"), u128::from(90_001 * (stats.eviction_programs + stats.gc_programs)));
    assert_eq!(energy.of("erase"), u128::from(400_009 * stats.erases));
    assert_eq!(energy.of("flash network transfer"), u128::from(37 * (stats.bytes_out + stats.bytes_in)));
    assert_eq!(energy.of("planes on"), 4 * 500 * u128::from(now.ps()));
    assert_eq!(energy.of("controllers on"), 2_000 * u128::from(now.ps()));
    // Of every read 3 us and the search of 10 ns, of programs 100 us, of erases 1 ms.
    let work = Time::from_ns(3_010).times(stats.senses())
        + Time::from_us(100).times(stats.eviction_programs + stats.gc_programs)
        + Time::from_ms(1).times(stats.erases);
    assert_eq!(energy.of("planes at work"), 1_200 * u128::from(work.ps()));
}
