//! What an observer is told, against what the part counts for itself.

use super::*;
use crate::vliw::observe::{Act, Done, Observer};
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
            Act::Waits { .. } => panic!("nobody has a section that another writes"),
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
