//! Which tiers are protected: feedback from refaults.
//!
//! For each tier it is counted how many folios of it were evicted or protected, and how many of those came back while the same generation was the
//! oldest. A tier that comes back at more than twice the rate of the first one is protected. Counts of generations that are gone fade by halves
//! (`read_ctrl_pos`, `reset_ctrl_pos`, `positive_ctrl_err` of `mm/vmscan.c`).

const MAX_NR_TIERS: usize = 4;
/// Fewer refaults than this say nothing (`MIN_LRU_BATCH`).
const SIGNIFICANT: u64 = 64;

/// The counts of a tier.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    refaulted: u64,
    total: u64,
}

/// The counts of all tiers.
#[derive(Debug, Default)]
pub(super) struct Control {
    refaulted: [u64; MAX_NR_TIERS],
    evicted: [u64; MAX_NR_TIERS],
    /// The first tier is never protected.
    protected: [u64; MAX_NR_TIERS],
    faded: [Position; MAX_NR_TIERS],
}

impl Control {
    pub(super) fn refaulted(&mut self, tier: usize) {
        self.refaulted[tier] += 1;
    }

    pub(super) fn evicted(&mut self, tier: usize) {
        self.evicted[tier] += 1;
    }

    pub(super) fn protected(&mut self, tier: usize) {
        self.protected[tier] += 1;
    }

    fn position(&self, tier: usize) -> Position {
        Position {
            refaulted: self.faded[tier].refaulted + self.refaulted[tier],
            total: self.faded[tier].total + self.evicted[tier] + self.protected[tier],
        }
    }

    /// The oldest generation is another one.
    pub(super) fn carry_over(&mut self) {
        for tier in 0..MAX_NR_TIERS {
            let Position { refaulted, total } = self.position(tier);
            self.faded[tier] = Position { refaulted: refaulted / 2, total: total / 2 };
        }
        (self.refaulted, self.evicted, self.protected) = Default::default();
    }

    /// The last tier that is not protected (`get_tier_idx`).
    pub(super) fn tier_idx(&self) -> usize {
        let first = self.position(0);
        (1..MAX_NR_TIERS).find(|tier| !may_evict(first, self.position(*tier))).unwrap_or(MAX_NR_TIERS) - 1
    }
}

/// Whether a tier has few refaults, or no more than twice the rate of the first one (`positive_ctrl_err` with gains of 1 and 2).
fn may_evict(first: Position, tier: Position) -> bool {
    tier.refaulted < SIGNIFICANT
        || tier.refaulted * (first.total + SIGNIFICANT) <= (first.refaulted + 1) * tier.total * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `positive_ctrl_err` by hand: the first tier has 100 refaults of 936 evicted; gains are 1 and 2.
    #[test]
    fn a_tier_that_returns_at_twice_the_rate_is_protected() {
        let mut control = Control::default();
        control.refaulted[0] = 100;
        control.evicted[0] = 936;
        // 202 * (936 + 64) = 202,000 <= (100 + 1) * 1000 * 2 = 202,000: not yet.
        (control.refaulted[1], control.evicted[1]) = (202, 1000);
        assert_eq!(control.tier_idx(), 3);
        control.refaulted[1] = 203;
        assert_eq!(control.tier_idx(), 0);
        // What is protected counts as evicted: 203,000 <= 101 * 1005 * 2 = 203,010.
        control.protected[1] = 5;
        assert_eq!(control.tier_idx(), 3);
    }

    #[test]
    fn a_few_refaults_say_nothing_and_old_ones_fade() {
        let mut control = Control::default();
        (control.refaulted[2], control.evicted[2]) = (63, 63);
        assert_eq!(control.tier_idx(), 3);
        control.refaulted[2] = 64;
        // 64 * 64 = 4096 > 1 * 63 * 2.
        assert_eq!(control.tier_idx(), 1);
        control.carry_over();
        // 32 of 31 are left.
        assert_eq!((control.faded[2].refaulted, control.faded[2].total), (32, 31));
        assert_eq!(control.tier_idx(), 3);
        control.refaulted[2] = 32;
        assert_eq!(control.tier_idx(), 1);
    }
}
