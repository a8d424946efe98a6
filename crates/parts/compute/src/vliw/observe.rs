//! Looking on at an accelerator: what its cores did when, and who had which data section.

use super::chain::Instance;
use engine::Time;

/// What took a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act<'a> {
    /// A worker had a screen, from Flashvisor's decision to its knowledge of the end.
    Screen {
        /// The worker.
        worker: u16,
        /// Its microblock, in the kernel.
        microblock: u32,
        /// Which of the microblock's it is.
        screen: u32,
    },
    /// A worker computed a section of its screen.
    Section {
        /// The worker.
        worker: u16,
        /// Of the time, the part for which it waited for its caches or for memory.
        stalled: Time,
    },
    /// A kernel waited for the lock on a data section.
    Waits {
        /// The array.
        array: &'a str,
    },
    /// It held it.
    Holds {
        /// The array.
        array: &'a str,
    },
    /// Flashvisor's core worked.
    Flashvisor,
    /// Storengine's core worked.
    Storengine,
}

/// Something that an accelerator did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<'a> {
    /// What.
    pub act: Act<'a>,
    /// For which kernel; none of firmware.
    pub kernel: Option<Instance>,
    /// Its program.
    pub program: &'a str,
    /// From when.
    pub from: Time,
    /// Until when: of firmware's cores, it may lie ahead.
    pub to: Time,
}

/// Looks on at everything that an accelerator does, when its end is known.
///
/// An observer cannot schedule anything: a result is the same bit for bit with it and without.
pub trait Observer {
    /// Something is done, or will be.
    fn done(&mut self, done: &Done<'_>);
}
