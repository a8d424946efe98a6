//! Reads that wait for a line of the buffer while every line is dirty (`flash.buffer.full_reads`).

use super::{Device, Event, Out, milestone};
use engine::Cx;
use proto::Lpn;

impl Device {
    /// Whether a read waits for a line: the policy asks for it, every line is dirty, and some unit of the read has none.
    ///
    /// It waits until the data that has been dirty for longest, and is not on its way, is on flash: each read that waits takes
    /// a line of its own.
    pub(super) fn waits_for_line(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        if !self.buffered.as_ref().is_some_and(|b| b.parts.reads_wait) {
            return false;
        }
        let Some(mut buffered) = self.buffered.take() else { return false };
        let (first, end) = (self.active[id].next, self.active[id].end);
        let lacks_line = (first..end).any(|unit| !buffered.buffer.has_line(Lpn(unit)));
        let oldest = if lacks_line { buffered.buffer.next_to_leave() } else { None };
        if let Some(write) = oldest {
            buffered.reads.push_back((write, id));
            self.flush(&mut buffered, cx);
        }
        self.buffered = Some(buffered);
        oldest.is_some()
    }

    /// Starts the reads whose line is clean now, in the order in which they came.
    pub(super) fn resume_reads(&mut self, cx: &mut impl Cx<Event, Out>) {
        while let Some(buffered) = &mut self.buffered {
            let Some((write, id)) = buffered.reads.front().copied() else { return };
            if !buffered.buffer.is_durable(write) {
                return;
            }
            buffered.reads.pop_front();
            self.active[id].life.reach(milestone::BUFFER, cx.now());
            self.read_now(id, cx);
        }
    }
}
