//! Kernels that come: where their arrays lie, and when they may begin.

use super::program::Program;
use super::stats::KernelTimes;
use super::{Accelerator, Asked, Event, GROUP, Message, Out};
use crate::vliw::chain::Instance as Number;
use config::SpecError;
use kernel::{Cx, Time};
use nest::Section;
use proto::groups::{Ask, Groups};

/// A kernel that was offloaded.
pub(super) struct Instance {
    pub(super) program: usize,
    app: u16,
    /// The first page group of each array.
    pub(super) arrays: Vec<u32>,
    /// Locks that it waits for, and the tags of all.
    unlocked: usize,
    locks: Vec<u32>,
    /// Groups of it that are being written after its end.
    pub(super) leaving: u32,
    pub(super) times: KernelTimes,
    pub(super) over: Option<Time>,
}

/// Page groups of an array.
fn groups(program: &Program, array: usize) -> u32 {
    program.kernel.arrays()[array].bytes().div_ceil(GROUP) as u32
}

impl Accelerator {
    /// Gives an array its page groups.
    fn place(&mut self, count: u32, what: &str) -> Result<u32, SpecError> {
        let first = self.given;
        match first.checked_add(count).filter(|end| *end <= self.groups) {
            Some(end) => {
                self.given = end;
                Ok(first)
            }
            None => {
                let what = format!(
                    "{what} needs {count} page groups, and {} of flash's {} are left",
                    self.groups - first,
                    self.groups
                );
                Err(SpecError::new("groups", what).help("fewer instances, or smaller ones"))
            }
        }
    }

    pub(super) fn place_inputs(&mut self, program: usize) -> Result<(), SpecError> {
        for array in 0..self.programs[program].inputs.len() {
            if self.programs[program].is_shared(array) {
                let count = groups(&self.programs[program], array);
                let name = self.programs[program].kernel.name().to_owned();
                let first = self.place(count, &name)?;
                self.on_flash[first as usize..(first + count) as usize].fill(true);
                self.programs[program].inputs[array] = Some(first);
            }
        }
        Ok(())
    }

    /// An instance of a kernel comes, of an application. Its arrays get their page groups, and are locked.
    ///
    /// # Errors
    /// More writable data than flash holds.
    pub fn offload(
        &mut self,
        program: usize,
        app: u16,
        cx: &mut impl Cx<Event, Out>,
    ) -> Result<Number, SpecError> {
        let number = self.instances.len() as Number;
        let mut arrays = Vec::new();
        for array in 0..self.programs[program].inputs.len() {
            let first = match self.programs[program].inputs[array] {
                Some(first) => first,
                None => {
                    let count = groups(&self.programs[program], array);
                    let name = self.programs[program].kernel.name().to_owned();
                    let first = self.place(count, &name)?;
                    let range = first as usize..(first + count) as usize;
                    self.owner[range.clone()].fill(number);
                    let is_there = self.programs[program].kernel.arrays()[array].section == Section::Inout;
                    self.on_flash[range].fill(is_there);
                    first
                }
            };
            arrays.push(first);
        }
        let times = KernelTimes { instance: number, offloaded: cx.now(), ..KernelTimes::default() };
        let unlocked = arrays.len();
        self.instances.push(Instance {
            program,
            app,
            arrays,
            unlocked,
            locks: Vec::new(),
            leaving: 0,
            times,
            over: None,
        });
        for array in 0..unlocked {
            let (shared, count) =
                (self.programs[program].is_shared(array), groups(&self.programs[program], array));
            let first = self.instances[number as usize].arrays[array];
            let range = Groups { first, last: first + count - 1 };
            let lock = |tag| Ask::Lock { tag, groups: range, write: !shared };
            let tag = self.ask(Asked::Lock(number), lock, cx);
            self.instances[number as usize].locks.push(tag);
        }
        Ok(number)
    }

    /// An array of a kernel is locked.
    pub(super) fn locked(&mut self, number: Number, cx: &mut impl Cx<Event, Out>) {
        let instance = &mut self.instances[number as usize];
        instance.unlocked -= 1;
        if instance.unlocked == 0 {
            self.send(Message::Offloaded(number), 0, cx);
        }
    }

    /// A kernel may be scheduled.
    pub(super) fn chain_up(&mut self, number: Number) {
        let instance = &self.instances[number as usize];
        let chained = self.chain.offload(instance.app, &self.programs[instance.program].screens);
        debug_assert_eq!(chained as usize, self.chained.len());
        self.chained.push(number);
    }

    /// The last screen of a kernel is over: what it leaves goes to flash, and nobody asks for its scratch again.
    pub(super) fn end_kernel(&mut self, number: Number, cx: &mut impl Cx<Event, Out>) {
        self.instances[number as usize].times.computed = cx.now();
        let program = self.instances[number as usize].program;
        for array in 0..self.programs[program].inputs.len() {
            let section = self.programs[program].kernel.arrays()[array].section;
            let (first, count) =
                (self.instances[number as usize].arrays[array], groups(&self.programs[program], array));
            for group in first..first + count {
                match section {
                    Section::Input => {}
                    Section::Scratch if !self.frames.is_writing(group) => self.frames.forget(group),
                    _ => {
                        let goes = section != Section::Scratch && self.frames.write(group);
                        if goes {
                            self.program_group(group, cx);
                        }
                        self.instances[number as usize].leaving += u32::from(self.frames.is_writing(group));
                    }
                }
            }
        }
        self.leave(number, cx);
    }

    /// A kernel may be over.
    pub(super) fn leave(&mut self, number: Number, cx: &mut impl Cx<Event, Out>) {
        let instance = &mut self.instances[number as usize];
        if instance.leaving > 0 {
            return;
        }
        instance.over = Some(cx.now());
        instance.times.over = cx.now();
        self.stats.kernels.push(instance.times);
        for tag in std::mem::take(&mut instance.locks) {
            self.asked.remove(tag);
            cx.emit(Out::Ask(Ask::Unlock { tag }));
        }
        cx.emit(Out::Over(number));
    }
}
