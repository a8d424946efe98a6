//! Saving and loading a buffer.

use super::evict::LineState;
use super::{Buffer, BufferCounters, Order};
use engine::Snapshot;
use rustc_hash::FxHashMap;

impl Buffer {
    /// Appends the state, that of the policies included; the shape and the policies' parameters are not part of it.
    pub fn save(&self, out: &mut Vec<u8>) {
        // Naming every field makes a forgotten one a compile error. What is left out follows from the lines.
        let Buffer {
            shape: _,
            high: _,
            low: _,
            lines,
            free,
            index: _,
            waiting: _,
            under_way: _,
            eviction,
            admission,
            sequence,
            dirty: _,
            flushing: _,
            unflushed: _,
            draining,
            starving,
            counters,
        } = self;
        lines.save(out);
        free.save(out);
        sequence.save(out);
        draining.save(out);
        starving.save(out);
        counters.save(out);
        eviction.save(out);
        admission.save(out);
    }

    /// Replaces the state by one that a buffer of the same shape and policies saved. `None` if it is cut short or
    /// malformed: the buffer must not be used any more.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.lines = Vec::load(input)?;
        self.free = Vec::load(input)?;
        self.sequence = u64::load(input)?;
        self.draining = bool::load(input)?;
        self.starving = bool::load(input)?;
        self.counters = BufferCounters::load(input)?;
        self.eviction.load(input)?;
        self.admission.load(input)?;
        self.derive()
    }

    /// Everything that follows from the lines.
    fn derive(&mut self) -> Option<()> {
        if self.lines.len() > self.shape.lines as usize {
            return None;
        }
        let mut vacant = vec![false; self.lines.len()];
        for line in &self.free {
            if std::mem::replace(vacant.get_mut(*line as usize)?, true) {
                return None;
            }
        }
        self.index = FxHashMap::default();
        let (mut waiting, mut under_way) = (Vec::new(), Vec::new());
        for (name, line) in (0u32..).zip(&self.lines).filter(|(name, _)| !vacant[*name as usize]) {
            if !line.is_sound(self.shape.unit(), self.sequence) || self.index.insert(line.lpn, name).is_some()
            {
                return None;
            }
            match line.state {
                LineState::Clean => {}
                LineState::Dirty => waiting.push((line.since, name)),
                LineState::Flushing => under_way.extend(line.oldest().map(|since| (since, name))),
            }
        }
        waiting.sort_unstable();
        under_way.sort_unstable();
        self.flushing = self.count(LineState::Flushing, &vacant);
        self.dirty = waiting.iter().filter(|(_, line)| !self.lines[*line as usize].kept).count() as u32;
        let used = self.lines.iter().zip(&vacant).filter(|(_, vacant)| !**vacant);
        self.unflushed = used.map(|(line, _)| line.unflushed()).sum();
        self.waiting = Order::from_sorted(&waiting, self.lines.len())?;
        self.under_way = Order::from_sorted(&under_way, self.lines.len())?;
        Some(())
    }

    fn count(&self, state: LineState, vacant: &[bool]) -> u32 {
        let held = self.lines.iter().zip(vacant).filter(|(line, vacant)| !**vacant && line.state == state);
        held.count() as u32
    }
}

#[cfg(test)]
mod tests {
    use crate::buffer::evict::LineState;
    use crate::buffer::line::Line;
    use engine::Snapshot;
    use proto::Lpn;
    use std::fmt::Debug;

    #[test]
    fn an_unsound_line_is_seen() {
        let line = Line { present: 3, dirty: 1, state: LineState::Dirty, since: 4, ..Line::vacant(Lpn(7)) };
        assert!(line.is_sound(0xf, 4));
        assert!(!line.is_sound(0x1, 4), "a sector outside of the unit");
        assert!(!line.is_sound(0xf, 3), "a write that never was");
        assert!(!Line { dirty: 4, ..line.clone() }.is_sound(0xf, 4), "dirty and absent");
        assert!(
            !Line { state: LineState::Clean, ..line.clone() }.is_sound(0xf, 4),
            "clean with dirty sectors"
        );
    }

    #[test]
    fn states_are_loaded_as_saved() {
        fn same<T: Snapshot + PartialEq + Debug>(value: T) {
            let mut bytes = Vec::new();
            value.save(&mut bytes);
            assert_eq!(T::load(&mut bytes.as_slice()), Some(value));
        }
        same([LineState::Clean, LineState::Dirty, LineState::Flushing]);
        assert_eq!(LineState::load(&mut [3u8].as_slice()), None);
    }
}
