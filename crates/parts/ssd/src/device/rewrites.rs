//! Units that are written again soon after.

use engine::{Snapshot, Time};
use proto::Lpn;
use rustc_hash::FxHashSet;

/// Which units were written in the present window. Windows follow each other; one ends with the first write after its
/// time.
#[derive(Clone, Debug)]
pub(super) struct Rewrites {
    window: Time,
    until: Time,
    written: FxHashSet<Lpn>,
}

impl Rewrites {
    pub(super) fn new(window: Time) -> Rewrites {
        Rewrites { window, until: Time::ZERO, written: FxHashSet::default() }
    }

    /// Appends the state; the length of a window is not part of it.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Rewrites { window: _, until, written } = self;
        let mut written: Vec<Lpn> = written.iter().copied().collect();
        written.sort_unstable();
        until.save(out);
        written.save(out);
    }

    /// Replaces the state by a saved one; `None` if it is cut short or malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.until = Time::load(input)?;
        self.written = Vec::load(input)?.into_iter().collect();
        Some(())
    }

    /// A unit is written. Whether it was in this window before.
    pub(super) fn is_again(&mut self, lpn: Lpn) -> bool {
        !self.written.insert(lpn)
    }

    /// The units of a write have been seen: its time may end the window.
    pub(super) fn wrote(&mut self, now: Time) {
        if now > self.until {
            self.written.clear();
            self.until = now + self.window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_with_the_first_write_after_its_time() {
        let ms = Time::from_ms;
        let mut rewrites = Rewrites::new(ms(10));
        let mut write = |unit, at| {
            let again = rewrites.is_again(Lpn(unit));
            rewrites.wrote(at);
            again
        };
        // The first write of all begins a window, and is not in it.
        assert!(!write(7, ms(1)) && !write(7, ms(2)) && write(7, ms(3)));
        assert!(!write(8, ms(11)) && write(8, ms(11)));
        assert!(write(7, ms(12)), "this write ends the window");
        assert!(!write(7, ms(13)) && write(7, ms(14)));
    }
}
