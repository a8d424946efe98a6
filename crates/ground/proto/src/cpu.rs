//! What a core executes: jobs of a service, and the operations of the threads that serve them.
//!
//! The workload executes a job a little further on its data each time it is asked ([`Service::step`]) and writes the
//! operations of that piece to a tape; the core gives them their time. So addresses, dependences and branches come from
//! the data, in the order in which the machine gets there.

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OpKind {
    /// Arithmetic and everything else that touches no memory.
    Compute,
    /// As [`OpKind::Compute`], but each of its instructions needs the result of the one before, the first those that the
    /// operation needs: a cycle each.
    Chain,
    /// Load of up to 64 bytes of one line.
    Load,
    /// Store to up to 64 bytes of one line.
    Store,
    /// Read and write of up to 16 bytes as one, and a fence: what locks are made of.
    Atomic,
    /// Conditional branch that was not taken.
    NotTaken,
    /// Conditional branch that was taken.
    Taken,
}

/// An operation of a thread, or several instructions in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Bytes accessed, within one line of 64; zero if it does not access memory.
    pub width: u8,
    /// Instructions that it stands for, itself the last: at least one. Those before the last touch no memory and are
    /// independent of each other and of everything else, but for a [`OpKind::Chain`].
    pub count: u16,
    /// How many operations before this one stand those whose results it needs, for its address or its data; zero for none. An
    /// operation of a job that is further away than the tape's window ([`NEEDS`]) is named by none.
    pub needs: [u16; 2],
    /// Address of the instruction in the program's text.
    pub pc: u32,
    /// First byte accessed, virtual.
    pub address: u64,
}

/// The furthest operation that another can need.
pub const NEEDS: u16 = 1024;

/// What serves jobs: a program with its data.
pub trait Service {
    /// Bytes of its address space, which begins at zero: every address is below.
    fn footprint(&self) -> u64;
    /// Bytes of its text: every `pc` is below.
    fn text(&self) -> u32;
    /// What serves its jobs, said before anything else is asked: slots from `core * threads` up to the next multiple of `threads` are those
    /// of a core's threads. Most programs have one memory, whatever serves them.
    fn serve_on(&mut self, _cores: u16, _threads: u32) {}
    /// What a user must know of how it is served, a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// How many jobs there are, if they have an end: each is served once, and memory is as the first finds it. Otherwise there are as many as
    /// the system says, with numbers from zero.
    fn jobs(&self) -> Option<u64> {
        None
    }
    /// A job begins in `slot`, a number that no running job has. What the job asks for depends on its number and the
    /// service's seed alone.
    fn start(&mut self, slot: u32, job: u64);
    /// Executes the job in `slot` further and appends its operations to the tape, at least one unless the job ends; whether
    /// the job goes on. It is asked again only when every operation of the piece before has been executed.
    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool;
    /// Appends what jobs have changed of its data, while no job runs: equal data are equal bytes.
    fn save(&self, out: &mut Vec<u8>);
    /// Takes what was saved of a service that was opened by the same words off the front of `input`, as it was opened itself; `None` if
    /// that is cut short or malformed: then it must not be used any more.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}
