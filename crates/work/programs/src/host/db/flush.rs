//! Writes pages of the pool: to the doublewrite file first, then to their places.

use proto::file::Call;

use super::pool::Pool;
use super::{DOUBLEWRITE, PAGE, TABLE};

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    Copies,
    CopiesDurable,
    Pages,
    Done,
}

/// Pages that one thread writes.
#[derive(Clone, Default)]
pub(super) struct Flush {
    /// Their frames.
    pub(super) frames: Vec<u32>,
    at: usize,
    phase: Phase,
}

impl Flush {
    /// Whether pages are being written, or a write has just returned.
    pub(super) fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Begins to write the frames.
    pub(super) fn begin(&mut self, doublewrite: bool) {
        self.at = 0;
        self.phase = if doublewrite { Phase::Copies } else { Phase::Pages };
    }

    /// The next call; none once all are written, and then the pool knows.
    pub(super) fn next(&mut self, pool: &mut Pool, lsn: u64) -> Option<Call> {
        let pages = self.frames.len() as u64;
        let (after, call) = match self.phase {
            Phase::Copies => {
                (Phase::CopiesDurable, Call::Write { fd: DOUBLEWRITE, offset: 0, bytes: pages * PAGE })
            }
            Phase::CopiesDurable => (Phase::Pages, Call::Sync { fd: DOUBLEWRITE, data_only: false }),
            Phase::Pages if self.at < self.frames.len() => {
                let page = pool.page(self.frames[self.at]);
                self.at += 1;
                (Phase::Pages, Call::Write { fd: TABLE, offset: u64::from(page) * PAGE, bytes: PAGE })
            }
            Phase::Pages => (Phase::Done, Call::Sync { fd: TABLE, data_only: false }),
            Phase::Idle | Phase::Done => {
                for frame in self.frames.drain(..) {
                    pool.written(frame, lsn);
                }
                self.phase = Phase::Idle;
                return None;
            }
        };
        self.phase = after;
        Some(call)
    }
}
