//! Workload of a core: jobs of a service, and the operations of the threads that serve them.
//!
//! Each call of [`Service::step`] executes a job a little further on its data, and writes the operations of that piece
//! to a tape; the core times them. Addresses, dependences and branches therefore come from the data, in the order in
//! which the machine gets there.

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OpKind {
    /// Arithmetic and all other instructions without memory accesses.
    Compute,
    /// Like [`OpKind::Compute`], but each instruction needs the result of the one before, and the first those that the
    /// operation needs: a cycle each.
    Chain,
    /// Load of up to 64 bytes of one line.
    Load,
    /// Store to up to 64 bytes of one line.
    Store,
    /// Atomic read and write of up to 16 bytes with a fence, the basis of locks.
    Atomic,
    /// Conditional branch that was not taken.
    NotTaken,
    /// Conditional branch that was taken.
    Taken,
}

/// Operation of a thread, or several instructions in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// Kind of the operation.
    pub kind: OpKind,
    /// Bytes accessed, within one line of 64; zero if it does not access memory.
    pub width: u8,
    /// Number of instructions that it represents, itself the last: at least one. Those before the last touch no memory
    /// and are independent of each other and of everything else, except for a [`OpKind::Chain`].
    pub count: u16,
    /// Distances to the earlier operations whose results it needs, for its address or its data; zero for none.
    /// Operations of a job further away than the tape's window ([`NEEDS`]) are not named.
    pub needs: [u16; 2],
    /// Address of the instruction in the program's text.
    pub pc: u32,
    /// First byte accessed, virtual.
    pub address: u64,
}

/// Maximum distance to a needed operation.
pub const NEEDS: u16 = 1024;

/// Server of jobs: a program with its data.
pub trait Service {
    /// Bytes of its address space, which begins at zero; every address is below.
    fn footprint(&self) -> u64;
    /// Bytes of its text; every `pc` is below.
    fn text(&self) -> u32;
    /// Sets the cores and the threads of each that serve the jobs, before any other call. Slots from `core * threads`
    /// up to the next multiple of `threads` are those of a core's threads. Most programs have one memory, whatever
    /// serves them.
    fn serve_on(&mut self, _cores: u16, _threads: u32) {}
    /// Notes for the user on how jobs are served, a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// Number of jobs, if finite: each is served once, and memory is as the first finds it. `None`: the system sets the
    /// number of jobs, which are numbered from zero.
    fn jobs(&self) -> Option<u64> {
        None
    }
    /// Starts a job in `slot`, a number not used by a running job. The job's request depends only on its number and the
    /// service's seed.
    fn start(&mut self, slot: u32, job: u64);
    /// Executes the job in `slot` further and appends its operations to the tape, at least one unless the job ends.
    /// Returns whether the job goes on. It is called again only when every operation of the piece before has been
    /// executed.
    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool;
    /// Appends the data changed by jobs, while no job runs: equal data are equal bytes.
    fn save(&self, out: &mut Vec<u8>);
    /// Restores data saved by a service opened with the same arguments, from the front of `input`; this service must be
    /// newly opened. Returns `None` if the input is truncated or malformed; the service must not be used afterwards.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}
