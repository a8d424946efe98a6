//! Clean and dirty lines by age.

use super::LineState;
use crate::buffer::order::Order;
use engine::Snapshot;

/// What the age-ordered policies share: a stamp for each line, and the clean and the dirty lines by stamp.
///
/// Flushes complete in any order, so a line that becomes clean belongs anywhere among the clean ones: mere lists would
/// not keep the order exactly.
#[derive(Clone, Debug, Default)]
pub(super) struct Aged {
    clock: u64,
    stamps: Vec<u64>,
    clean: Order,
    dirty: Order,
}

impl Aged {
    pub(super) fn enter(&mut self, line: u32, state: LineState) {
        if self.stamps.len() <= line as usize {
            self.stamps.resize(line as usize + 1, 0);
        }
        self.clock += 1;
        self.stamps[line as usize] = self.clock;
        self.turn(line, state);
    }

    /// Makes a line the youngest.
    #[inline]
    pub(super) fn renew(&mut self, line: u32) {
        self.clock += 1;
        self.stamps[line as usize] = self.clock;
        for order in [&mut self.clean, &mut self.dirty] {
            if order.remove(line) {
                order.insert(line, self.clock);
            }
        }
    }

    pub(super) fn turn(&mut self, line: u32, state: LineState) {
        self.leave(line);
        match state {
            LineState::Clean => self.clean.insert(line, self.stamps[line as usize]),
            LineState::Dirty => self.dirty.insert(line, self.stamps[line as usize]),
            LineState::Flushing => {}
        }
    }

    pub(super) fn leave(&mut self, line: u32) {
        // A flushing line is in neither.
        let _ = self.clean.remove(line) || self.dirty.remove(line);
    }

    pub(super) fn oldest_clean(&self) -> Option<u32> {
        self.clean.first().map(|(_, line)| line)
    }

    pub(super) fn oldest_dirty(&self) -> Option<u32> {
        self.dirty.first().map(|(_, line)| line)
    }

    /// Lines that were ever used.
    pub(super) fn lines(&self) -> usize {
        self.stamps.len()
    }
}

impl Snapshot for Aged {
    fn save(&self, out: &mut Vec<u8>) {
        let Aged { clock, stamps, clean, dirty } = self;
        clock.save(out);
        stamps.save(out);
        clean.sorted().save(out);
        dirty.sorted().save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        let clock = u64::load(input)?;
        let stamps = Vec::<u64>::load(input)?;
        let clean = Vec::<(u64, u32)>::load(input)?;
        let dirty = Vec::<(u64, u32)>::load(input)?;
        let sound =
            |(key, line): &(u64, u32)| stamps.get(*line as usize).is_some_and(|s| key == s && *s <= clock);
        if !clean.iter().chain(&dirty).all(sound) {
            return None;
        }
        let (clean, dirty) =
            (Order::from_sorted(&clean, stamps.len())?, Order::from_sorted(&dirty, stamps.len())?);
        Some(Aged { clock, stamps, clean, dirty })
    }
}
