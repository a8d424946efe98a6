//! What the dies are doing when power goes, and how long they take to be scanned.

use super::op::{Class, NO_OP, Op, OpKind};
use super::{Backend, DieState};
use crate::array::OOB_BYTES;
use crate::geometry::Geometry;
use engine::Time;

impl Backend {
    /// Calls `f` with each operation that an array is working on at `now`, or was when it was suspended.
    pub fn at_work_at(&self, now: Time, mut f: impl FnMut(&Op)) {
        for die in &self.dies {
            let working = die.state == DieState::Working && now > die.array_from;
            let suspended = die.suspended.map_or(NO_OP, |(op, _)| op);
            for mut at in [if working { die.active } else { NO_OP }, suspended] {
                while at != NO_OP {
                    f(&self.ops[at]);
                    at = self.ops[at].mate;
                }
            }
        }
    }

    /// Time to read the out-of-band area of the first `pages` pages of each block, and to erase some blocks: of the
    /// busiest die or channel.
    pub fn time_of_scan(&self, geo: &Geometry, pages: &[u32], erased: &[u64]) -> Time {
        let mut dies = vec![Time::ZERO; self.dies.len()];
        let mut channels = vec![Time::ZERO; self.channels.len()];
        let bytes = OOB_BYTES * geo.units_per_page();
        let op = |kind, block| {
            let slot = geo.first_slot(block);
            Op::new(kind, Class::MapRead, geo.address(slot), slot, 1, bytes, 0)
        };
        // Array time of the first pages of a block, by their number. One page is sensed at a time.
        let mut sensing = vec![Time::ZERO];
        for page in 0..geo.shape.pages {
            let longer = sensing[page as usize] + self.timing.sense(page, 1);
            sensing.push(longer);
        }
        for (block, pages) in (0u64..).zip(pages) {
            let read = op(OpKind::Read, block);
            let moving = (self.timing.command(&read) + self.timing.leave(u64::from(read.bytes)))
                .times(u64::from(*pages));
            dies[read.die as usize] += sensing[*pages as usize] + moving;
            channels[self.dies[read.die as usize].channel as usize] += moving;
        }
        for block in erased {
            let erase = op(OpKind::Erase, *block);
            dies[erase.die as usize] += self.timing.command(&erase) + self.timing.array(&erase);
        }
        dies.into_iter().chain(channels).max().unwrap_or(Time::ZERO)
    }
}
