//! The tracks of accelerators: cores, firmware, and locks on data sections.

use super::event::{Args, Event};
use super::{State, Timeline};
use compute::vliw::{Act, Done, Observer};
use engine::Time;

/// The track of Flashvisor's core, and of Storengine's, behind those of workers.
const FIRMWARE: u32 = 64;
/// The first track of locks, of which each kernel has one.
const LOCKS: u32 = 128;

/// What looks on at an accelerator.
pub(super) struct Cores {
    timeline: Timeline,
    /// Its process.
    pid: u32,
}

impl Timeline {
    /// What looks on at each accelerator, in their order.
    pub(super) fn accelerators(&self) -> impl Iterator<Item = Cores> {
        let (first, count) = {
            let state = self.0.borrow();
            (state.behind_drives(), state.accelerators)
        };
        (first..first + count).map(|pid| Cores { timeline: self.clone(), pid })
    }
}

impl Observer for Cores {
    fn done(&mut self, done: &Done<'_>) {
        let (mut state, pid) = (self.timeline.0.borrow_mut(), self.pid);
        let Done { act, kernel, program, from, to } = *done;
        let kernel = kernel.unwrap_or_default();
        let at = (from, to);
        match act {
            Act::Screen { worker, microblock, screen } => {
                state.names.track((pid, worker.into()), format_args!("worker {worker}"));
                state.act(
                    (pid, worker.into()),
                    at,
                    format_args!("{program} {kernel}"),
                    Args::Screen { kernel, microblock, screen },
                );
            }
            Act::Section { worker, stalled } => {
                state.names.track((pid, worker.into()), format_args!("worker {worker}"));
                state.act(
                    (pid, worker.into()),
                    at,
                    format_args!("section"),
                    Args::Section { kernel, stalled },
                );
            }
            Act::Flashvisor => {
                state.names.track((pid, FIRMWARE), format_args!("Flashvisor"));
                state.act((pid, FIRMWARE), at, format_args!("message"), Args::None);
            }
            Act::Storengine => {
                state.names.track((pid, FIRMWARE + 1), format_args!("Storengine"));
                state.act((pid, FIRMWARE + 1), at, format_args!("work"), Args::None);
            }
            Act::Waits { array } => state.lock((pid, LOCKS + kernel), ("waits", array), program, at),
            Act::Holds { array } => state.lock((pid, LOCKS + kernel), ("holds", array), program, at),
        }
    }
}

impl State {
    /// A kernel's lock on a data section: locks overlap.
    fn lock(&mut self, at: (u32, u32), (what, array): (&str, &str), program: &str, (from, to): (Time, Time)) {
        let kernel = at.1 - LOCKS;
        self.names.track(at, format_args!("locks of kernel {kernel}"));
        let name = self.names.event(format_args!("{program} {kernel} {what} {array}"));
        self.acts.add(Event { at, from, to, name, overlaps: true, joins: None, args: Args::None });
    }
}
