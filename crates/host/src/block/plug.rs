//! Plugs: requests that a task gathers before it shows them to the queue.

use super::request::NONE;

/// `BLK_MAX_REQUEST_COUNT`.
pub(super) const MOST: u32 = 32;
/// `BLK_PLUG_FLUSH_SIZE`.
pub(super) const FLUSH_BYTES: u32 = 128 << 10;

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
