//! An accelerator, the flash that it governs, and the host that offloads kernels to it.

mod checks;

use crate::wires::Here;
use compute::vliw::Instance;
use compute::vliw::accelerator::Accelerator;
use config::SpecError;
use engine::{Cx, Time};
use flash::groups::GroupsFlash;
use nest::executed::Executed;
use net::pcie::Link;
use std::sync::Arc;
use workload::kernels::{Application, Inputs, Program};

/// A kernel that is offloaded.
pub(crate) struct Offloaded {
    /// Its program.
    pub(crate) program: String,
    /// Its application, by its place among those of the run.
    pub(crate) app: u16,
    /// Bytes that are there before it starts, those that it shares included.
    pub(crate) input_bytes: u64,
    instance: Instance,
}

/// How kernels come: what crosses the link for each, and what follows.
pub(crate) struct Offload {
    pub(crate) link: Link,
    pub(crate) table: u64,
    pub(crate) interrupt: Time,
}

/// An accelerator with the flash that it governs.
pub(crate) struct Governed {
    /// What the user calls the accelerator.
    pub(crate) name: String,
    /// What the user calls its flash.
    pub(crate) storage: String,
    pub(crate) accelerator: Accelerator,
    pub(crate) flash: GroupsFlash,
    /// Whether the spec of flash says which blocks are bad.
    pub(crate) has_bad_blocks: bool,
    pub(crate) offload: Offload,
    /// The kernels of the run, in the order in which they are offloaded.
    pub(crate) kernels: Vec<Offloaded>,
}

impl Governed {
    /// Gives each instance of applications its place: kernels that are the same share what they only read, if they are not to have their own, and what they leave, if they are to change the same data. What is on flash from the start was
    /// written before the run.
    ///
    /// # Errors
    /// More data than flash holds.
    pub(crate) fn place(&mut self, applications: Vec<Application>, shadow: bool) -> Result<(), SpecError> {
        let mut known: Vec<(Program, bool, usize)> = Vec::new();
        for (app, Application { program, instances, inputs, in_turn, .. }) in (0..).zip(applications) {
            let is_apart = inputs != Inputs::Shared;
            for _ in 0..instances {
                let same = |(other, turn, _): &&(Program, bool, usize)| *other == program && *turn == in_turn;
                let found = known.iter().find(|one| !is_apart && same(one));
                let number = match found {
                    Some((_, _, number)) => *number,
                    None => {
                        let number = self.add(&program)?;
                        if in_turn {
                            self.accelerator.share_results(number)?;
                        }
                        if !is_apart {
                            known.push((program.clone(), in_turn, number));
                        }
                        number
                    }
                };
                let instance = self.accelerator.instance(number, app)?;
                let (name, input_bytes) = (program.name().to_owned(), program.input_bytes());
                self.kernels.push(Offloaded { program: name, app, input_bytes, instance });
            }
        }
        let written = self.flash.assume_written(self.accelerator.inputs());
        written.map_err(|fault| SpecError::new("groups", fault.to_string()))?;
        if shadow {
            self.flash.attach_shadow();
        }
        Ok(())
    }

    /// A program whose instances share what they only read.
    fn add(&mut self, program: &Program) -> Result<usize, SpecError> {
        match program {
            Program::Nest(kernel) => self.accelerator.add(kernel.clone()),
            Program::Executed(on_data) => {
                let program: Arc<dyn Executed> = on_data.clone();
                self.accelerator.add_executed(&program)
            }
        }
    }

    /// The host offloads all kernels at once: their tables cross the link one after another.
    pub(crate) fn begin(&mut self, here: &mut Here<'_>) {
        let Offload { link, table, interrupt } = &mut self.offload;
        for kernel in &self.kernels {
            let now = Cx::<compute::vliw::accelerator::Event, compute::vliw::accelerator::Out>::now(here);
            let there = link.to_device(now, *table) + link.latency() + *interrupt;
            self.accelerator.offload(kernel.instance, there - now, here);
        }
    }

    /// Energy is measured from here on. Other figures are of whole kernels, from their offload to their end.
    pub(crate) fn reset_energy(&mut self, now: Time) {
        self.accelerator.reset_energy(now);
        self.flash.reset_energy(now);
        self.offload.link.reset_energy(now);
    }

    /// Share of the kernels that are over.
    pub(crate) fn progress(&self) -> f64 {
        1.0 - self.accelerator.open() as f64 / self.kernels.len().max(1) as f64
    }

    /// What it waits for, in a sentence.
    pub(crate) fn waiting(&self) -> String {
        format!(
            "waiting: {} of {} kernels of `{}`; {} requests to flash are not answered, {} sections wait for memory; flash has {} under way",
            self.accelerator.open(),
            self.kernels.len(),
            self.name,
            self.accelerator.asked(),
            self.accelerator.hungry(),
            self.flash.outstanding()
        )
    }
}
