//! Where the time of an instance goes.

use engine::Time;
use proto::offload::Order;

/// What a program is at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Opens, closes and removes files.
    Files,
    /// Reads files.
    Read,
    /// Brings data into order.
    Marshal,
    /// Copies between its memory and the driver's.
    Copy,
    /// Sends to the coprocessor.
    Send,
    /// Waits for the coprocessor's work.
    Work,
    /// Receives from the coprocessor.
    Receive,
    /// Writes files.
    Write,
    /// Makes durable what it has written.
    Sync,
}

impl Phase {
    /// All of them.
    pub const ALL: [Phase; 9] = [
        Phase::Files,
        Phase::Read,
        Phase::Marshal,
        Phase::Copy,
        Phase::Send,
        Phase::Work,
        Phase::Receive,
        Phase::Write,
        Phase::Sync,
    ];

    /// What results call it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Files => "files",
            Phase::Read => "read",
            Phase::Marshal => "marshal",
            Phase::Copy => "copy",
            Phase::Send => "send",
            Phase::Work => "work",
            Phase::Receive => "receive",
            Phase::Write => "write",
            Phase::Sync => "sync",
        }
    }
}

/// Time of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// From its beginnings to its ends.
    pub time: Time,
    /// Of that, time of a core; the rest is waiting.
    pub core: Time,
}

/// The time of an instance by who has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shares {
    /// The program waits for drives, and for others who do.
    pub storage: Time,
    /// It has a core, or waits for one while it computes.
    pub cpu: Time,
    /// It waits for the coprocessor, or for data on the way there or back.
    pub accelerator: Time,
}

/// An instance that was executed, or is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executed {
    /// Which of the run's applications it belongs to.
    pub application: u32,
    /// Which of the application's instances it is.
    pub instance: u32,
    /// When it was begun.
    pub begun: Time,
    /// When it was over.
    pub ended: Option<Time>,
    /// Bytes that it had sent.
    pub sent_bytes: u64,
    /// Bytes that it had received.
    pub received_bytes: u64,
    /// Time for which its first thread waited for the second.
    pub waited: Time,
    /// Time of the second thread's phases.
    moved: Time,
    spent: [Spent; Phase::ALL.len()],
}

impl Executed {
    pub(super) fn new((application, instance): (u32, u32), begun: Time) -> Executed {
        let spent = [Spent::default(); Phase::ALL.len()];
        Executed {
            application,
            instance,
            begun,
            ended: None,
            sent_bytes: 0,
            received_bytes: 0,
            waited: Time::ZERO,
            moved: Time::ZERO,
            spent,
        }
    }

    pub(super) fn ordered(&mut self, order: &Order) {
        match order {
            Order::Send { bytes } => self.sent_bytes += bytes,
            Order::Receive { bytes } => self.received_bytes += bytes,
            Order::Work { .. } => {}
        }
    }

    /// Time of a phase.
    pub fn spent(&self, phase: Phase) -> Spent {
        self.spent[phase as usize]
    }

    /// A thread has spent a time on a phase, and some of a core.
    pub(super) fn spend(&mut self, lane: usize, phase: Phase, (time, core): (Time, Time)) {
        let at = &mut self.spent[phase as usize];
        at.time += time;
        at.core += core;
        if lane > 0 {
            self.moved += time;
        }
    }

    /// Time by who has it: together, that of all phases, of both threads where there are two.
    pub fn shares(&self) -> Shares {
        let mut shares = Shares::default();
        for phase in Phase::ALL {
            let Spent { time, core } = self.spent(phase);
            let waits = match phase {
                Phase::Files | Phase::Read | Phase::Write | Phase::Sync => &mut shares.storage,
                Phase::Marshal | Phase::Copy => &mut shares.cpu,
                Phase::Send | Phase::Work | Phase::Receive => &mut shares.accelerator,
            };
            *waits += time.since(core);
            shares.cpu += core;
        }
        shares
    }

    /// Whether the phases of its first thread last as long as it does, those of the second no longer, and no phase has more of a core than it lasts; true of one that
    /// is under way.
    pub fn is_accounted(&self) -> bool {
        let Some(ended) = self.ended else { return true };
        let (sum, lasts) =
            (self.spent.iter().fold(self.waited, |sum, spent| sum + spent.time), ended - self.begun);
        sum == lasts + self.moved
            && self.moved <= lasts
            && self.spent.iter().all(|spent| spent.core <= spent.time)
    }
}
