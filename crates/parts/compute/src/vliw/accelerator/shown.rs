//! What an observer is told.

use super::Accelerator;
use crate::vliw::chain::Instance as Number;
use crate::vliw::observe::{Act, Done};
use engine::Time;

impl Accelerator {
    /// Something is done, for a kernel or by firmware.
    pub(super) fn show(&mut self, act: Act<'_>, kernel: Option<Number>, from: Time, to: Time) {
        let Some(observer) = &mut self.observer else { return };
        let program = kernel.map_or("", |kernel| {
            let program = self.instances[kernel as usize].program;
            &self.programs[program].program.name
        });
        observer.done(&Done { act, kernel, program, from, to });
    }

    /// A kernel gives its data sections back, which it asked for when it was downloaded.
    pub(super) fn show_locks(&mut self, kernel: Number, now: Time) {
        let Some(observer) = &mut self.observer else { return };
        let instance = &self.instances[kernel as usize];
        let program = &self.programs[instance.program].program;
        for (array, (asked, held)) in program.arrays.iter().zip(&instance.locked) {
            let array = &array.name;
            let done = |act, from, to| Done { act, kernel: Some(kernel), program: &program.name, from, to };
            if held > asked {
                observer.done(&done(Act::Waits { array }, *asked, *held));
            }
            observer.done(&done(Act::Holds { array }, *held, now));
        }
    }
}
