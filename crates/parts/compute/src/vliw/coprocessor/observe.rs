//! Looking on at a coprocessor: what its cores and its link did when.

use engine::Time;

/// What took a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act<'a> {
    /// A step was executed, its launch apart.
    Step {
        /// Its program.
        program: &'a str,
        /// Which of the program's it is.
        step: u32,
    },
    /// A core computed its share of the step under way.
    Share {
        /// The core.
        core: u16,
        /// The step's program.
        program: &'a str,
        /// Of the time, the part for which it waited for its caches or for memory.
        stalled: Time,
    },
    /// Data crossed the link on their way to the memory.
    Sends {
        /// Bytes.
        bytes: u64,
    },
    /// Data crossed it on their way back.
    Receives {
        /// Bytes.
        bytes: u64,
    },
}

/// Something that a coprocessor did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<'a> {
    /// What.
    pub act: Act<'a>,
    /// From when.
    pub from: Time,
    /// Until when: of the link, it may lie ahead.
    pub to: Time,
}

/// Looks on at everything that a coprocessor does, when its end is known.
///
/// An observer cannot schedule anything: a result is the same bit for bit with it and without.
pub trait Observer {
    /// Something is done, or will be.
    fn done(&mut self, done: &Done<'_>);
}
