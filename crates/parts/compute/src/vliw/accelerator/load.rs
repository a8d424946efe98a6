//! Offload of kernels: the places of their arrays, and the time from which they may begin.

use super::super::Instance as Number;
use super::account::KernelTimes;
use super::{Accelerator, Asked, Event, GROUP, Message, Out};
use crate::vliw::program::{Part, Program};
use config::SpecError;
use engine::{Cx, Time};
use nest::Section;
use proto::groups::{Ask, Groups};
use std::ops::Range;

/// Program that can be offloaded.
pub(super) struct Admitted {
    pub(super) program: Program,
    /// Sections, in the order of microblocks and screens.
    pub(super) sections: Vec<Part>,
    /// Screens of each microblock, as ranges of sections.
    pub(super) screens: Vec<Vec<Range<usize>>>,
    /// First page group of each array that instances share.
    pub(super) shared: Vec<Option<u32>>,
}

impl Admitted {
    /// Divides each microblock into at most `most` screens, and these into sections of at most `budget` bytes.
    ///
    /// # Errors
    /// More sections than a program may have.
    pub(super) fn new(program: Program, most: u64, budget: u64) -> Result<Admitted, SpecError> {
        let mut sections = Vec::new();
        let mut screens = Vec::new();
        for microblock in 0..program.microblocks() {
            let mut of = Vec::new();
            for screen in program.screens(microblock, most) {
                let first = sections.len();
                program.sections(screen, budget, &mut sections)?;
                of.push(first..sections.len());
            }
            screens.push(of);
        }
        let shared = vec![None; program.arrays.len()];
        Ok(Admitted { program, sections, screens, shared })
    }

    /// Returns whether instances only read an array.
    fn is_input(&self, array: usize) -> bool {
        self.program.arrays[array].section == Section::Input
    }
}

/// Offloaded kernel.
pub(super) struct Instance {
    pub(super) program: usize,
    app: u16,
    /// First page group of each array.
    pub(super) arrays: Vec<u32>,
    /// Number of locks that it waits for, and the tags of all locks.
    unlocked: usize,
    locks: Vec<u32>,
    /// Times at which each lock was requested and obtained.
    pub(super) locked: Vec<(Time, Time)>,
    /// Groups being written after its end.
    pub(super) leaving: u32,
    /// Longest ended screen of the current microblock.
    pub(super) longest: Time,
    pub(super) times: KernelTimes,
}

/// Page groups of an array.
fn groups(program: &Program, array: usize) -> u32 {
    program.arrays[array].bytes.div_ceil(GROUP) as u32
}

impl Accelerator {
    /// Assigns page groups to an array: data on flash from the start take the first ones up, everything else the last
    /// ones down.
    fn place(&mut self, program: usize, array: usize) -> Result<u32, SpecError> {
        let of = &self.programs[program].program;
        let count = groups(of, array);
        let left = self.groups - self.inputs - self.others;
        if count > left {
            let (name, array) = (&of.name, &of.arrays[array].name);
            let what = format!(
                "array `{array}` of `{name}` needs {count} page groups of {} KiB, but only {left} of the flash's {} are left",
                GROUP >> 10,
                self.groups
            );
            return Err(SpecError::new("groups", what).help("use fewer or smaller instances"));
        }
        let is_there =
            of.arrays[array].section != Section::Output && of.arrays[array].section != Section::Scratch;
        let first = if is_there { self.inputs } else { self.groups - self.others - count };
        *(if is_there { &mut self.inputs } else { &mut self.others }) += count;
        self.on_flash[first as usize..(first + count) as usize].fill(is_there);
        Ok(first)
    }

    pub(super) fn place_inputs(&mut self, program: usize) -> Result<(), SpecError> {
        for array in 0..self.programs[program].shared.len() {
            if self.programs[program].is_input(array) {
                self.programs[program].shared[array] = Some(self.place(program, array)?);
            }
        }
        Ok(())
    }

    /// Makes later instances of a program change the same data: their results have one place. Flashvisor's locks let
    /// one instance work on it at a time.
    ///
    /// # Errors
    /// More data than the flash holds.
    pub fn share_results(&mut self, program: usize) -> Result<(), SpecError> {
        for array in 0..self.programs[program].shared.len() {
            let section = self.programs[program].program.arrays[array].section;
            if matches!(section, Section::Output | Section::Inout) {
                self.programs[program].shared[array] = Some(self.place(program, array)?);
            }
        }
        Ok(())
    }

    /// Adds an instance of a kernel, for an application; returns its number for [`Accelerator::offload`]. Its arrays
    /// are assigned page groups; data that it reads and then writes are on flash from the start.
    ///
    /// # Errors
    /// More data than the flash holds.
    pub fn instance(&mut self, program: usize, app: u16) -> Result<Number, SpecError> {
        let number = self.instances.len() as Number;
        let mut arrays = Vec::new();
        for array in 0..self.programs[program].shared.len() {
            let first = match self.programs[program].shared[array] {
                Some(first) => first,
                None => {
                    let first = self.place(program, array)?;
                    let count = groups(&self.programs[program].program, array);
                    self.owner[first as usize..(first + count) as usize].fill(number);
                    first
                }
            };
            arrays.push(first);
        }
        self.open += 1;
        self.instances.push(Instance {
            program,
            app,
            unlocked: arrays.len(),
            arrays,
            locks: Vec::new(),
            locked: Vec::new(),
            leaving: 0,
            longest: Time::ZERO,
            times: KernelTimes { instance: number, ..KernelTimes::default() },
        });
        Ok(number)
    }

    /// Offloads an instance: after a time, its description table is in memory and Flashvisor is interrupted. Then its
    /// arrays are locked.
    pub fn offload(&mut self, number: Number, after: Time, cx: &mut impl Cx<Event, Out>) {
        self.instances[number as usize].times.offloaded = cx.now();
        if after > Time::ZERO {
            cx.after(after, Event::Downloaded(number));
        } else {
            self.lock(number, cx);
        }
    }

    /// Locks the arrays of a kernel: for reading if it only reads them.
    pub(super) fn lock(&mut self, number: Number, cx: &mut impl Cx<Event, Out>) {
        let program = self.instances[number as usize].program;
        for array in 0..self.instances[number as usize].arrays.len() {
            let (is_input, count) =
                (self.programs[program].is_input(array), groups(&self.programs[program].program, array));
            let first = self.instances[number as usize].arrays[array];
            let range = Groups { first, last: first + count - 1 };
            let lock = |tag| Ask::Lock { tag, groups: range, write: !is_input };
            let tag = self.ask(Asked::Lock(number), lock, cx);
            let instance = &mut self.instances[number as usize];
            instance.locks.push(tag);
            instance.locked.push((cx.now(), cx.now()));
        }
    }

    /// Handles a lock that was obtained.
    pub(super) fn locked(&mut self, number: Number, lock: u32, cx: &mut impl Cx<Event, Out>) {
        let instance = &mut self.instances[number as usize];
        instance.unlocked -= 1;
        let array = instance.locks.iter().position(|tag| *tag == lock).expect("a lock of the kernel");
        instance.locked[array].1 = cx.now();
        let (first, program, unlocked) = (instance.arrays[array], instance.program, instance.unlocked);
        let of = &self.programs[program];
        if of.shared[array].is_some() && !of.is_input(array) {
            // Data of earlier instances now belong to this one.
            let count = groups(&of.program, array);
            self.owner[first as usize..(first + count) as usize].fill(number);
        }
        if unlocked == 0 {
            self.send(Message::Offloaded(number), 0, cx);
        }
    }

    /// Makes a kernel schedulable.
    pub(super) fn chain_up(&mut self, number: Number, now: Time) {
        let instance = &mut self.instances[number as usize];
        instance.times.released = now;
        let screens: Vec<u32> =
            self.programs[instance.program].screens.iter().map(|of| of.len() as u32).collect();
        let chained = self.chain.offload(instance.app, &screens);
        debug_assert_eq!(chained as usize, self.chained.len());
        self.chained.push(number);
    }

    /// Ends a kernel after its last screen: its results go to flash, and its scratch data are dropped.
    pub(super) fn end_kernel(&mut self, number: Number, cx: &mut impl Cx<Event, Out>) {
        self.instances[number as usize].times.computed = cx.now();
        let program = self.instances[number as usize].program;
        for array in 0..self.programs[program].shared.len() {
            let section = self.programs[program].program.arrays[array].section;
            let (first, count) = (
                self.instances[number as usize].arrays[array],
                groups(&self.programs[program].program, array),
            );
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
        self.feed(cx);
    }

    /// Completes a kernel if all its results are on flash.
    pub(super) fn leave(&mut self, number: Number, cx: &mut impl Cx<Event, Out>) {
        let instance = &mut self.instances[number as usize];
        if instance.leaving > 0 {
            return;
        }
        instance.times.over = cx.now();
        self.open -= 1;
        self.stats.kernels.push(instance.times);
        let locks = std::mem::take(&mut instance.locks);
        self.show_locks(number, cx.now());
        for tag in locks {
            self.asked.remove(tag);
            cx.emit(Out::Ask(Ask::Unlock { tag }));
        }
        cx.emit(Out::Over(number));
    }
}
