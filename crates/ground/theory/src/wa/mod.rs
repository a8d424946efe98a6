//! Write amplification of a page-mapped flash translation layer in its steady state.
//!
//! Unless said otherwise: every logical unit is mapped, the host overwrites single units chosen independently
//! and uniformly at random, a victim is chosen among all closed blocks each time a block is needed, and
//! blocks are many (mean field). Amplification counts units programmed for each unit that the host writes.
//! What the formulas call physical units are those of closed blocks: reserved free blocks and open frontiers
//! hold no spare.

mod age;
mod exact;
mod mixed;
mod split;
mod stream;
mod uniform;

pub use age::{fifo, fifo_classes, fifo_histogram};
pub use exact::exact_greedy;
pub use mixed::{Frontiers, Mixed, hot_cold};
pub use split::{Split, hot_cold_pools, hot_cold_streams};
pub use uniform::{
    d_choices, d_choices_histogram, greedy, greedy_approximation, greedy_histogram, greedy_large_blocks,
    random, random_histogram,
};

/// Spare space of a drive of `T` physical and `U` logical units.
///
/// Two ratios are in use and differ by half at 50 %: `(T - U) / U` (data sheets' over-provisioning, this
/// project's "spare") and `(T - U) / T` (Desnoyers's `S_f`, Van Houdt's `1 - rho`). Neither is a plain number
/// here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spare {
    utilisation: f64,
}

impl Spare {
    /// From `(T - U) / U`.
    ///
    /// # Panics
    /// If negative or not a number.
    pub fn of_logical(ratio: f64) -> Spare {
        assert!(ratio >= 0.0, "spare of {ratio} of the logical units");
        Spare { utilisation: 1.0 / (1.0 + ratio) }
    }

    /// From `(T - U) / T`.
    ///
    /// # Panics
    /// Outside 0 to 1, one excluded.
    pub fn of_physical(ratio: f64) -> Spare {
        assert!((0.0..1.0).contains(&ratio), "spare of {ratio} of the physical units");
        Spare { utilisation: 1.0 - ratio }
    }

    /// From counts of physical units in closed blocks and of logical units.
    ///
    /// # Panics
    /// Unless `0 < logical <= physical`.
    pub fn of_units(physical: u64, logical: u64) -> Spare {
        assert!(0 < logical && logical <= physical, "{logical} logical of {physical} physical units");
        Spare { utilisation: logical as f64 / physical as f64 }
    }

    /// `(T - U) / U`.
    pub fn over_logical(self) -> f64 {
        1.0 / self.utilisation - 1.0
    }

    /// `(T - U) / T`.
    pub fn over_physical(self) -> f64 {
        1.0 - self.utilisation
    }

    /// `U / T`, Van Houdt's `rho`: the valid share of all closed blocks together.
    pub fn utilisation(self) -> f64 {
        self.utilisation
    }

    /// `T / U`, Desnoyers's `alpha`.
    pub fn alpha(self) -> f64 {
        1.0 / self.utilisation
    }
}

/// Two classes of logical units: a share `pages` of them, hot, receives a share `writes` of the host's
/// writes, uniformly; the rest, cold, receives the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skew {
    pages: f64,
    writes: f64,
}

impl Skew {
    /// `Skew::new(0.2, 0.8)`: 20 % of the data take 80 % of the writes.
    ///
    /// # Panics
    /// Unless both lie strictly between 0 and 1.
    pub fn new(pages: f64, writes: f64) -> Skew {
        assert!(pages > 0.0 && pages < 1.0, "hot share of pages {pages} is not between 0 and 1");
        assert!(writes > 0.0 && writes < 1.0, "hot share of writes {writes} is not between 0 and 1");
        Skew { pages, writes }
    }

    /// Share of logical units that are hot.
    pub fn pages(self) -> f64 {
        self.pages
    }

    /// Share of host writes that go to them.
    pub fn writes(self) -> f64 {
        self.writes
    }
}

#[cfg(test)]
mod tests {
    use super::Spare;

    #[test]
    fn the_two_ratios_of_spare() {
        let half = Spare::of_logical(0.5);
        assert!((half.over_physical() - 1.0 / 3.0).abs() < 1e-15);
        assert!((half.alpha() - 1.5).abs() < 1e-15);
        assert_eq!(Spare::of_units(300, 200), Spare::of_units(3, 2));
        assert!((Spare::of_units(300, 200).over_logical() - 0.5).abs() < 1e-15);
        assert!((Spare::of_physical(0.07).over_logical() - 0.07 / 0.93).abs() < 1e-15);
    }

    #[test]
    #[should_panic(expected = "300 logical of 200 physical")]
    fn more_data_than_space() {
        Spare::of_units(200, 300);
    }
}
