//! Proportions of events, of which older ones count less (`lib/flex_proportions.c`).
//!
//! Events of a kind are counted, and all of them together; every count halves when a period ends. Each kind does so when it is looked at next.
//! The kernel's counters are sums over processors and read with an error; these are exact.

/// Precision of a maximum proportion.
pub(super) const FRAC_SHIFT: u32 = 10;
/// All.
pub(super) const FRAC_BASE: u64 = 1 << FRAC_SHIFT;

/// Events of all kinds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Global {
    events: u64,
    period: u64,
}

/// Events of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Local {
    events: u64,
    period: u64,
}

impl Default for Global {
    /// One event that no kind has, so that no period is without any (`fprop_global_init`).
    fn default() -> Global {
        Global { events: 1, period: 0 }
    }
}

impl Global {
    /// A period has ended. Returns whether it changes anything that further ones end (`fprop_new_period`).
    pub(super) fn new_period(&mut self) -> bool {
        let more = self.events > 1;
        if more {
            self.events /= 2;
            self.period += 1;
        }
        more
    }
}

impl Local {
    /// Events have happened, unless the kind has `max_frac` parts of all of [`FRAC_BASE`] already; of those that would exceed it, as many
    /// as just reach it (`__fprop_add_percpu_max`).
    pub(super) fn add(&mut self, global: &mut Global, max_frac: u64, mut nr: u64) {
        if max_frac < FRAC_BASE {
            let (numerator, denominator) = self.fraction(global);
            let room = i128::from(denominator * max_frac) - i128::from(numerator << FRAC_SHIFT);
            let Ok(room) = u64::try_from(room) else { return };
            let others = FRAC_BASE - max_frac;
            if room < nr * others {
                nr = room.div_ceil(others);
            }
        }
        self.events = self.now(global) + nr;
        self.period = global.period;
        global.events += nr;
    }

    /// The kind's part of all events: numerator and denominator (`fprop_fraction_percpu`).
    pub(super) fn fraction(&self, global: &Global) -> (u64, u64) {
        let numerator = self.now(global);
        (numerator, global.events.max(numerator).max(1))
    }

    /// Its events, with what they have lost in periods since (`fprop_reflect_period_percpu`).
    fn now(&self, global: &Global) -> u64 {
        let periods = global.period - self.period;
        if periods < 64 { self.events >> periods } else { 0 }
    }
}
