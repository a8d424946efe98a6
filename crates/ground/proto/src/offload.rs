//! Messages between a program of a host and its coprocessor: orders, one after another, and the plan that determines
//! them.
//!
//! A coprocessor has no storage: the program reads its input from files and sends it, and receives its output and
//! writes it to files. Data that fit the coprocessor's memory stay there until the room is needed.

/// Order to a coprocessor. The program waits until it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Sends bytes to its memory.
    Send {
        /// Number of bytes.
        bytes: u64,
    },
    /// Executes a step of a program.
    Work {
        /// Program, as numbered by the coprocessor.
        program: u32,
        /// Step, as in [`Action::Work`].
        step: u32,
    },
    /// Receives bytes from its memory.
    Receive {
        /// Number of bytes.
        bytes: u64,
    },
}

/// Array of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedArray {
    /// Name of the array.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// True if the contents are in a file before the program starts.
    pub is_given: bool,
    /// True if all instances of the program may read the same file, since the array is never written.
    pub is_shared: bool,
    /// True if the contents must be in a file when the program ends.
    pub is_kept: bool,
}

/// Consecutive bytes of an array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stretch {
    /// Array, as an index into [`Plan::arrays`].
    pub array: u16,
    /// First byte.
    pub first: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Next action of a program instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Load bytes of a file into the coprocessor's memory.
    Load(Stretch),
    /// Execute a step, whose data are all present.
    Work(u32),
    /// Store bytes from the coprocessor's memory into a file.
    Store(Stretch),
}

/// Ordered actions of a program instance. They depend on the program and on the size of the coprocessor's memory, not
/// on time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Name of the program.
    pub name: String,
    /// Program, as numbered by the coprocessor.
    pub program: u32,
    /// Arrays of the program.
    pub arrays: Vec<PlannedArray>,
    /// True if transfers before a step may overlap with the step before it, which does not use their data.
    pub ahead: bool,
    /// Actions in order.
    pub actions: Vec<Action>,
}
