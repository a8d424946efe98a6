//! The helper thread of a multiprocessor: it executes instructions for other parts, beside the warps of applications.
//!
//! It goes before them, and takes an issue slot an instruction. Each instruction needs the result of the one before. The thread
//! takes no slot of a warp, no registers and no cache: its instructions are arithmetic in all they cost.

use proto::memory::Help;
use std::collections::VecDeque;

/// Work of the helper thread, first come, first served.
#[derive(Default)]
pub(super) struct Helper {
    waiting: VecDeque<Help>,
    /// Instructions of the first that have been issued.
    issued: u32,
    /// The first cycle in which the next instruction may be issued.
    free: u64,
}

impl Helper {
    pub(super) fn push(&mut self, help: Help) {
        debug_assert!(help.instructions > 0, "nothing to execute: {help:?}");
        self.waiting.push_back(help);
    }

    /// The first cycle at or after `from` in which an instruction can be issued; the last of all without work.
    #[inline]
    pub(super) fn due(&self, from: u64) -> u64 {
        if self.waiting.is_empty() { u64::MAX } else { self.free.max(from) }
    }

    /// Issues an instruction, whose result is there `latency` cycles later; the work that ends with it.
    pub(super) fn issue(&mut self, cycle: u64, latency: u64) -> Option<Help> {
        self.free = cycle + latency;
        self.issued += 1;
        if self.waiting.front()?.instructions > self.issued {
            return None;
        }
        self.issued = 0;
        self.waiting.pop_front()
    }
}
