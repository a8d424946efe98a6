//! Between a program of a host and a coprocessor that it drives: what the program has the coprocessor do, one order after another, and the plan that says what to order.
//!
//! A coprocessor has no storage: whatever it works on, the program reads from files and sends, and whatever it leaves, the program takes back and writes. What fits the
//! coprocessor's memory stays there until its room is needed.

/// What a coprocessor is told to do. The program waits until it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// So many bytes go to its memory.
    Send {
        /// Bytes.
        bytes: u64,
    },
    /// It executes a step of a program.
    Work {
        /// The program, as the coprocessor numbers them.
        program: u32,
        /// The step, as [`Action::Work`] has it.
        step: u32,
    },
    /// So many bytes come from its memory.
    Receive {
        /// Bytes.
        bytes: u64,
    },
}

/// An array of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedArray {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Whether its contents are in a file before the program starts.
    pub is_given: bool,
    /// Whether all instances of the program may read the same file: nobody writes it.
    pub is_shared: bool,
    /// Whether its contents have to be in a file when the program ends.
    pub is_kept: bool,
}

/// Consecutive bytes of an array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stretch {
    /// The array, by its place in [`Plan::arrays`].
    pub array: u16,
    /// The first byte.
    pub first: u64,
    /// How many.
    pub bytes: u64,
}

/// What an instance of a program has to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// To bring bytes of a file to the coprocessor's memory.
    Load(Stretch),
    /// To have a step executed, for which all is there now.
    Work(u32),
    /// To bring bytes from the coprocessor's memory to a file.
    Store(Stretch),
}

/// What an instance of a program does, in order. It depends on the program and on how much the coprocessor's memory holds, not on time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The program's name.
    pub name: String,
    /// The program, as the coprocessor numbers them.
    pub program: u32,
    /// Its arrays.
    pub arrays: Vec<PlannedArray>,
    /// Whether what is moved before a step may be moved while the step before that one is executed, which does not work on it.
    pub ahead: bool,
    /// What it does.
    pub actions: Vec<Action>,
}
