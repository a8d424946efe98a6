//! What the host has announced and not sent yet.

use engine::{Snapshot, Time};
use std::collections::VecDeque;

/// Announcements, oldest first. What comes counts against the oldest; what has not come in time is not waited for any more.
#[derive(Clone, Debug)]
pub(super) struct Announced {
    expires: Time,
    /// When each ends, and sectors left of it.
    open: VecDeque<(Time, u64)>,
    /// Their sum.
    sectors: u64,
}

impl Announced {
    pub(super) fn new(expires: Time) -> Announced {
        Announced { expires, open: VecDeque::new(), sectors: 0 }
    }

    pub(super) fn add(&mut self, now: Time, sectors: u64) {
        self.open.push_back((now + self.expires, sectors));
        self.sectors += sectors;
    }

    pub(super) fn came(&mut self, sectors: u32) {
        let mut left = u64::from(sectors).min(self.sectors);
        self.sectors -= left;
        while let Some((_, open)) = self.open.front_mut().filter(|_| left > 0) {
            let taken = left.min(*open);
            *open -= taken;
            left -= taken;
            if *open == 0 {
                self.open.pop_front();
            }
        }
    }

    /// Sectors that are still to come.
    pub(super) fn sectors(&mut self, now: Time) -> u64 {
        while let Some((_, sectors)) = self.open.front().filter(|(end, _)| *end <= now) {
            self.sectors -= sectors;
            self.open.pop_front();
        }
        self.sectors
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        self.open.iter().copied().collect::<Vec<(Time, u64)>>().save(out);
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let open: Vec<(Time, u64)> = Vec::load(input)?;
        self.sectors = open.iter().try_fold(0u64, |sum, (_, sectors)| sum.checked_add(*sectors))?;
        self.open = open.into();
        Some(())
    }
}
