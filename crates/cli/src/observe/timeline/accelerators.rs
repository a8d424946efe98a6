//! The tracks of accelerators: cores, firmware, and locks on data sections.

use super::{Micro, State, Timeline};
use compute::vliw::observe::{Act, Done, Observer};
use kernel::Time;

/// The track of Flashvisor's core, and of Storengine's, behind those of workers.
const FIRMWARE: u32 = 64;

/// What looks on at an accelerator.
pub(crate) struct Cores {
    timeline: Timeline,
    /// Its process.
    pid: u32,
}

impl Timeline {
    /// What looks on at each accelerator, in their order.
    pub(crate) fn accelerators(&self) -> impl Iterator<Item = Cores> {
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
        if !state.has_room_for_act() {
            return;
        }
        let Done { act, kernel, program, from, to } = *done;
        let kernel = kernel.unwrap_or_default();
        let at = (from, to);
        match act {
            Act::Screen { worker, microblock, screen } => {
                state.name(pid, worker.into(), "worker");
                state.act(
                    (pid, worker.into()),
                    at,
                    format_args!("{program} {kernel}"),
                    format_args!("\"kernel\":{kernel},\"microblock\":{microblock},\"screen\":{screen}"),
                );
            }
            Act::Section { worker, stalled } => {
                state.name(pid, worker.into(), "worker");
                state.act(
                    (pid, worker.into()),
                    at,
                    format_args!("section"),
                    format_args!("\"kernel\":{kernel},\"stalled_us\":{}", Micro(stalled)),
                );
            }
            Act::Flashvisor => {
                state.name_as(pid, FIRMWARE, format_args!("Flashvisor"));
                state.act((pid, FIRMWARE), at, format_args!("message"), format_args!(""));
            }
            Act::Storengine => {
                state.name_as(pid, FIRMWARE + 1, format_args!("Storengine"));
                state.act((pid, FIRMWARE + 1), at, format_args!("work"), format_args!(""));
            }
            Act::Waits { array } => state.lock((pid, kernel), ("waits", array), program, at),
            Act::Holds { array } => state.lock((pid, kernel), ("holds", array), program, at),
        }
    }
}

impl State {
    /// A kernel's lock on a data section: locks overlap, so they are pairs of asynchronous events.
    fn lock(
        &mut self,
        (pid, kernel): (u32, u32),
        (what, array): (&str, &str),
        program: &str,
        (from, to): (Time, Time),
    ) {
        let id = self.requests;
        self.requests += 1;
        for (phase, at) in [("b", from), ("e", to)] {
            self.sink.write(format_args!(
                ",\n{{\"ph\":\"{phase}\",\"cat\":\"lock\",\"pid\":{pid},\"tid\":{kernel},\"id\":{id},\"name\":\"{program} {kernel} {what} {array}\",\"ts\":{}}}",
                Micro(at)
            ));
        }
    }
}
