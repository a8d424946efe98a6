//! Looking on at a program that has kernels executed: what it did for which instance when.

use super::Phase;
use engine::Time;

/// Something that a program did for an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<'a> {
    /// What.
    pub phase: Phase,
    /// What the instance executes.
    pub program: &'a str,
    /// Which of the run's applications the instance belongs to.
    pub application: u32,
    /// Which of the application's instances it is.
    pub instance: u32,
    /// Which of the program's threads did it.
    pub thread: u32,
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// Of that, time of a core; the rest is waiting.
    pub core: Time,
}

/// Looks on at everything that a program does.
///
/// An observer cannot schedule anything: a result is the same bit for bit with it and without.
pub trait Observer {
    /// Something is done.
    fn done(&mut self, done: &Done<'_>);
}
