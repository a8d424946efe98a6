//! Shadow of a stripe: a second account of the place of each command's bytes, chunk by chunk, and of its answered
//! parts.
//!
//! The shadow schedules nothing, and answers nothing.

use super::{Extent, Layout};
use proto::{Command, IoOp};
use std::collections::BTreeMap;

/// Part of a command that is inside.
#[derive(Clone, Copy, Debug)]
struct Due {
    extent: Extent,
    sent: bool,
    answered: bool,
}

/// Second account of a stripe.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    layout: Layout,
    /// Outstanding parts by command name.
    jobs: BTreeMap<u32, Vec<Due>>,
    found: Shadowed,
}

/// Results of a shadow.
#[derive(Clone, Debug, Default)]
pub struct Shadowed {
    /// Parts of commands compared.
    pub compared: u64,
    /// Parts that belong elsewhere, were not sent, or were answered when they were not under way; and commands that
    /// were answered before all of their parts.
    pub wrong: u64,
    /// Description of the first of these.
    pub first: Option<String>,
}

impl Shadow {
    /// Creates a shadow of a stripe without commands.
    pub(super) fn new(layout: Layout) -> Shadow {
        Shadow { layout, jobs: BTreeMap::new(), found: Shadowed::default() }
    }

    /// Results so far.
    pub(super) fn found(&self) -> &Shadowed {
        &self.found
    }

    fn wrong(&mut self, what: impl FnOnce() -> String) {
        self.found.wrong += 1;
        self.found.first.get_or_insert_with(what);
    }

    /// Notes a command that is about to be split.
    pub(super) fn splits(&mut self, job: u32, command: &Command) {
        let due = |extent| Due { extent, sent: false, answered: false };
        let Layout { chunk, members, .. } = self.layout;
        if command.op == IoOp::Flush {
            let all = (0..members as u16).map(|member| due(Extent { member, offset: 0, bytes: 0 }));
            self.jobs.insert(job, all.collect());
            return;
        }
        let mut parts: Vec<Due> = Vec::new();
        let (mut at, end) = (command.offset, command.offset + command.bytes);
        loop {
            let bytes = (chunk - at % chunk).min(end - at);
            let member = (at / chunk % members) as u16;
            match parts.iter_mut().find(|part| part.extent.member == member) {
                Some(part) => part.extent.bytes += bytes,
                None => {
                    let offset = at / (chunk * members) * chunk + at % chunk;
                    parts.push(due(Extent { member, offset, bytes }));
                }
            }
            at += bytes;
            if at == end {
                break;
            }
        }
        self.jobs.insert(job, parts);
    }

    /// Checks a part sent to a member.
    pub(super) fn sent(&mut self, job: u32, extent: Extent) {
        self.found.compared += 1;
        let due = self.jobs.get_mut(&job).into_iter().flatten();
        match due.into_iter().find(|due| due.extent == extent && !due.sent) {
            Some(due) => due.sent = true,
            None => self.wrong(|| format!("{extent:?} is not a part of the command")),
        }
    }

    /// Notes a part answered by a member.
    pub(super) fn answered(&mut self, job: u32, member: u16) {
        let due = self.jobs.get_mut(&job).into_iter().flatten();
        match due.into_iter().find(|due| due.extent.member == member && due.sent && !due.answered) {
            Some(due) => due.answered = true,
            None => self.wrong(|| format!("drive {member} answers a command of which it has no part")),
        }
    }

    /// Checks an answered command.
    pub(super) fn completed(&mut self, job: u32) {
        let left = self.jobs.remove(&job).into_iter().flatten().find(|due| !due.answered);
        if let Some(due) = left {
            self.wrong(|| format!("a command is answered before its part {:?}", due.extent));
        }
    }
}
