//! Plugs: requests that a task gathers before it shows them to the queue.

use super::Effects;
use super::queue::Queue;
use super::request::NONE;
use engine::Time;

/// `BLK_MAX_REQUEST_COUNT`.
const MOST: u32 = 32;
/// `BLK_PLUG_FLUSH_SIZE`.
const FLUSH_BYTES: u32 = 128 << 10;

/// Requests of one queue that a task gathers (`struct blk_plug`), the latest first. It must be flushed with
/// [`Queue::flush_plug`](super::Queue::flush_plug) before it is dropped.
///
/// A task with several drives has one for each: *chosen*, where Linux has one for all, and 64 requests in it from the second drive on.
#[derive(Debug)]
pub struct Plug {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Default for Plug {
    /// A plug without requests (`blk_start_plug`).
    fn default() -> Plug {
        Plug { first: NONE, count: 0 }
    }
}

impl Plug {
    /// Whether it holds no request.
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Requests that it holds.
    pub fn len(&self) -> u32 {
        self.count
    }
}

impl Queue {
    /// `blk_add_rq_to_plug`.
    pub(super) fn add_to_plug(&mut self, plug: &mut Plug, name: u32, now: Time, effects: &mut Effects) {
        let full = plug.count >= MOST;
        let long = plug.count > 0 && self.merges && self.requests[plug.first].bytes >= FLUSH_BYTES;
        if full || long {
            self.flush_plug(plug, false, now, effects);
        }
        self.requests[name].next = plug.first;
        plug.first = name;
        plug.count += 1;
    }

    /// What a task has gathered becomes visible (`blk_mq_flush_plug_list`): at the end of its work, or because it is about to sleep
    /// (`from_schedule`). In the second case, or for a scheduler, requests keep the order in which they came; otherwise they go to the driver
    /// at once, the latest first.
    pub fn flush_plug(&mut self, plug: &mut Plug, from_schedule: bool, now: Time, effects: &mut Effects) {
        plug.count = 0;
        let mut at = std::mem::replace(&mut plug.first, NONE);
        if !self.elevator && !from_schedule {
            while at != NONE {
                let next = std::mem::replace(&mut self.requests[at].next, NONE);
                self.issue(at, now, effects);
                at = next;
            }
            return;
        }
        // `blk_mq_dispatch_plug_list` as of 6.1.21 (34e0a279a993): those of one core after those of another, the core of the latest first, and
        // each in the order in which they came.
        let mut gathered = self.turned(at);
        while let Some(core) = self.latest_core(gathered) {
            let mut rest = (NONE, NONE);
            let mut hctx = 0;
            let mut at = gathered;
            while at != NONE {
                let next = self.requests[at].next;
                self.requests[at].next = NONE;
                if self.requests[at].core == core {
                    hctx = self.requests[at].hctx;
                    self.insert(at, now, effects);
                } else {
                    match rest {
                        (NONE, _) => rest.0 = at,
                        (_, last) => self.requests[last].next = at,
                    }
                    rest.1 = at;
                }
                at = next;
            }
            gathered = rest.0;
            if from_schedule {
                self.run_later(hctx, effects);
            } else {
                self.run_now(hctx, effects);
            }
        }
    }

    /// A chain of requests the other way round.
    fn turned(&mut self, mut at: u32) -> u32 {
        let mut turned = NONE;
        while at != NONE {
            let next = std::mem::replace(&mut self.requests[at].next, turned);
            (turned, at) = (at, next);
        }
        turned
    }

    /// The core of the last request of a chain.
    fn latest_core(&self, mut at: u32) -> Option<u16> {
        let mut core = None;
        while at != NONE {
            core = Some(self.requests[at].core);
            at = self.requests[at].next;
        }
        core
    }
}
