//! A second account of a stripe: where the bytes of each command belong, chunk by chunk, and which of its parts have been answered.
//!
//! The shadow schedules nothing, and answers nothing.

use super::{Extent, Layout};
use proto::{Command, IoOp};
use std::collections::BTreeMap;

/// A part of a command that is inside.
#[derive(Clone, Copy, Debug)]
struct Due {
    extent: Extent,
    sent: bool,
    answered: bool,
}

/// The second account.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    layout: Layout,
    /// By the name of the command.
    jobs: BTreeMap<u32, Vec<Due>>,
    found: Shadowed,
}

/// What a shadow has found.
#[derive(Clone, Debug, Default)]
pub struct Shadowed {
    /// Parts of commands that were compared.
    pub compared: u64,
    /// Parts that belong elsewhere, were not sent, or were answered when they were not under way, and commands that were answered
    /// before all of their parts.
    pub wrong: u64,
    /// The first of these, in words.
    pub first: Option<String>,
}

impl Shadow {
    /// Of a stripe without commands.
    pub(super) fn new(layout: Layout) -> Shadow {
        Shadow { layout, jobs: BTreeMap::new(), found: Shadowed::default() }
    }

    /// What has been found so far.
    pub(super) fn found(&self) -> &Shadowed {
        &self.found
    }

    fn wrong(&mut self, what: impl FnOnce() -> String) {
        self.found.wrong += 1;
        self.found.first.get_or_insert_with(what);
    }

    /// A command is about to be split.
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

    /// A part goes to a member.
    pub(super) fn sent(&mut self, job: u32, extent: Extent) {
        self.found.compared += 1;
        let due = self.jobs.get_mut(&job).into_iter().flatten();
        match due.into_iter().find(|due| due.extent == extent && !due.sent) {
            Some(due) => due.sent = true,
            None => self.wrong(|| format!("no bytes of a command are {extent:?}")),
        }
    }

    /// A member has answered a part.
    pub(super) fn answered(&mut self, job: u32, member: u16) {
        let due = self.jobs.get_mut(&job).into_iter().flatten();
        match due.into_iter().find(|due| due.extent.member == member && due.sent && !due.answered) {
            Some(due) => due.answered = true,
            None => self.wrong(|| format!("drive {member} answers what it has no part of")),
        }
    }

    /// A command is answered.
    pub(super) fn completed(&mut self, job: u32) {
        let left = self.jobs.remove(&job).into_iter().flatten().find(|due| !due.answered);
        if let Some(due) = left {
            self.wrong(|| format!("a command is answered before its part {:?}", due.extent));
        }
    }
}
