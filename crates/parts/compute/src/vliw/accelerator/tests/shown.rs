//! Reports to an observer, compared with the part's own counts.

use super::*;
use crate::vliw::{Act, Done, Observer, spec::AcceleratorEnergySpec, testing::power};
use config::{
    StatePower,
    units::{Energy, Power},
};
use std::cell::RefCell;
use std::rc::Rc;

/// Times by act.
#[derive(Default)]
struct Sums {
    sections: Vec<Time>,
    stalled: Vec<Time>,
    screens: Time,
    count: u64,
    holds: Vec<(u32, String)>,
    firmware: [Time; 2],
}

struct Watch(Rc<RefCell<Sums>>);

impl Observer for Watch {
    fn done(&mut self, done: &Done<'_>) {
        let (mut sums, took) = (self.0.borrow_mut(), done.to - done.from);
        match done.act {
            Act::Section { worker, stalled } => {
                sums.sections[usize::from(worker)] += took;
                sums.stalled[usize::from(worker)] += stalled;
            }
            Act::Screen { .. } => {
                sums.screens += took;
                sums.count += 1;
            }
            Act::Holds { array } => sums.holds.push((done.kernel.expect("a kernel's"), array.to_owned())),
            Act::Waits { .. } => panic!("a section waits, but none shares groups that another writes"),
            Act::Flashvisor => sums.firmware[0] += took,
            Act::Storengine => sums.firmware[1] += took,
        }
    }
}

#[test]
fn all_that_is_done_is_shown_once() {
    for scheduler in AcceleratorScheduling::all_defaults() {
        let name = scheduler.name();
        let spec = spec(3, scheduler);
        let mut part = Accelerator::new(&spec, 4_096).expect("an accelerator");
        for name in ["atax", "2dcon"] {
            part.add(shipped(name, 256)).expect("input that fits");
        }
        let sums = Rc::new(RefCell::new(Sums {
            sections: vec![Time::ZERO; 3],
            stalled: vec![Time::ZERO; 3],
            ..Sums::default()
        }));
        part.observer = Some(Box::new(Watch(Rc::clone(&sums))));
        let outside = run_part(&mut part, &[(0, 0), (1, 1), (0, 2)]);
        let (sums, stats) = (sums.borrow(), &part.stats);
        assert_eq!((&sums.sections, &sums.stalled), (&stats.busy, &stats.stalled), "{name}");
        assert_eq!((sums.screens, sums.count), (stats.work, stats.screens), "{name}");
        let now = outside.queue.now();
        let busy = part.busy(now);
        assert_eq!(sums.firmware, [busy[0], busy[1]], "{name}");
        let mut holds = sums.holds.clone();
        holds.sort();
        holds.dedup();
        let arrays: usize = part.instances.iter().map(|instance| instance.arrays.len()).sum();
        assert_eq!((holds.len(), sums.holds.len()), (arrays, arrays), "{name}");
    }
}

// Energy, against the busy times that the part counts for itself.

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
