//! Looking on at the back end: who occupied which die and which channel, when.

use super::Backend;
use super::op::{Class, NO_OP, Op, OpKind};
use engine::Time;

/// A command that has ended. It held its channel from `started` to `sent` and from `moved` to `ended`, and its die from
/// `started` to `ended`; the array worked from `sent` to `worked`, suspensions
/// included, and of a read that was retried all steps but the last transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenure {
    /// What the die did.
    pub kind: OpKind,
    /// On whose behalf.
    pub class: Class,
    /// Die.
    pub die: u32,
    /// Its channel.
    pub channel: u32,
    /// Planes that worked.
    pub planes: u32,
    /// Map units.
    pub units: u32,
    /// How often it was suspended.
    pub suspends: u8,
    /// The command began to enter the die.
    pub started: Time,
    /// The command, and the data of a program, had entered the die.
    pub sent: Time,
    /// The array had finished.
    pub worked: Time,
    /// The data of a read began to leave; `ended` if there is none.
    pub moved: Time,
    /// Everything was done.
    pub ended: Time,
}

/// Looks on at every command that ends.
///
/// An observer cannot schedule anything: a result is the same bit for bit with it and without.
pub trait Observer {
    /// A command has ended.
    fn ended(&mut self, tenure: &Tenure);
}

impl Backend {
    /// Tells the observer of a command that ends now; `first` is the first of its operations.
    #[cold]
    pub(super) fn show(&mut self, first: u32, now: Time) {
        let Op { kind, class, die, suspends, started, sensed, moved, .. } = self.ops[first];
        let (mut sent, mut planes, mut units) = (started, 0, 0);
        let mut at = first;
        while at != NO_OP {
            let op = &self.ops[at];
            if !op.has_joined {
                sent += self.timing.command(op);
                planes += self.alike.planes;
            }
            units += u32::from(op.units) * self.alike.planes;
            at = self.after(at);
        }
        let hands_out = kind == OpKind::Read && self.hands_out(first);
        let (worked, moved) = if hands_out { (sensed, moved) } else { (now, now) };
        let channel = self.dies[die as usize].channel;
        let tenure = Tenure {
            kind,
            class,
            die,
            channel,
            planes,
            units,
            suspends,
            started,
            sent,
            worked,
            moved,
            ended: now,
        };
        if let Some(observer) = &mut self.observer {
            observer.ended(&tenure);
        }
    }
}
