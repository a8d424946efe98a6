//! Tracks of coprocessors: cores, steps, the link, and the phases of the host's program for each kernel.

use super::Timeline;
use super::event::Args;
use compute::vliw::coprocessor::{Act, Done as Step, Observer as StepObserver};
use programs::host::offload::{Done as Phase, Observer as PhaseObserver};

/// Tracks of steps and of the link's directions, after those of cores.
const STEPS: u32 = 64;
const SENDS: u32 = 65;
const RECEIVES: u32 = 66;
/// Maximum number of threads of a program; each has one track per kernel.
const THREADS: u32 = 2;

/// Observer of a coprocessor.
pub(super) struct Steps {
    timeline: Timeline,
    /// Process of the track.
    pid: u32,
}

/// Observer of the program that drives a coprocessor.
pub(super) struct Phases {
    timeline: Timeline,
    /// Process of the track.
    pid: u32,
    /// Application and instance seen last, and the track of its first thread.
    last: Option<(u32, u32)>,
    track: u32,
}

impl Timeline {
    /// Observers of each coprocessor, in order, and of the program that drives it.
    pub(super) fn coprocessors(&self) -> impl Iterator<Item = (Steps, Phases)> {
        let (first, count) = {
            let state = self.0.borrow();
            (state.behind_drives() + state.accelerators, state.coprocessors)
        };
        (0..count).map(move |number| {
            let pid = first + 2 * number;
            let steps = Steps { timeline: self.clone(), pid };
            (steps, Phases { timeline: self.clone(), pid: pid + 1, last: None, track: 0 })
        })
    }
}

impl StepObserver for Steps {
    fn done(&mut self, done: &Step<'_>) {
        let (mut state, pid) = (self.timeline.0.borrow_mut(), self.pid);
        let at = (done.from, done.to);
        match done.act {
            Act::Step { program, step } => {
                state.names.track((pid, STEPS), format_args!("steps"));
                state.act((pid, STEPS), at, format_args!("{program}"), Args::Step(step));
            }
            Act::Share { core, program, stalled } => {
                state.names.track((pid, core.into()), format_args!("core {core}"));
                state.act((pid, core.into()), at, format_args!("{program}"), Args::Stalled(stalled));
            }
            Act::Sends { bytes } => {
                state.names.track((pid, SENDS), format_args!("sends"));
                state.act((pid, SENDS), at, format_args!("send"), Args::Bytes(bytes));
            }
            Act::Receives { bytes } => {
                state.names.track((pid, RECEIVES), format_args!("receives"));
                state.act((pid, RECEIVES), at, format_args!("receive"), Args::Bytes(bytes));
            }
        }
    }
}

impl PhaseObserver for Phases {
    fn done(&mut self, done: &Phase<'_>) {
        let (mut state, pid) = (self.timeline.0.borrow_mut(), self.pid);
        let Phase { phase, program, application, instance, thread, from, to, core } = *done;
        let kernel = (application, instance);
        if self.last.replace(kernel).is_some_and(|last| last != kernel) {
            self.track += THREADS;
        }
        let track = self.track + thread;
        match thread {
            0 => state.names.track((pid, track), format_args!("{program} {application}.{instance}")),
            _ => state.names.track((pid, track), format_args!("{program} {application}.{instance} moves")),
        }
        state.act((pid, track), (from, to), format_args!("{}", phase.name()), Args::Core(core));
    }
}
