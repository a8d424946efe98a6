//! Cost-benefit: most space gained for the data moved, weighted with age.

use super::{Victim, VictimContext, VictimView};

/// Maximises `age * (1 - u) / 2u` over the unit of each valid count that has been unchanged for longest.
#[derive(Clone, Copy, Debug)]
pub struct CostBenefit;

impl CostBenefit {
    /// Builds the policy.
    pub fn new(_: &VictimContext) -> CostBenefit {
        CostBenefit
    }
}

impl Victim for CostBenefit {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        let mut best: Option<(u32, u128, u128)> = None;
        for ru in view.by_valid() {
            let valid = u128::from(view.valid(ru));
            let gain = u128::from(view.age(ru)) * (u128::from(view.units_per_ru) - valid);
            // Fractions compare by cross-multiplication: floating point would break ties differently on other machines.
            if best.is_none_or(|(_, g, v)| gain * v > g * valid) {
                best = Some((ru, gain, valid));
            }
            if valid == 0 {
                break;
            }
        }
        best.map(|(ru, ..)| ru)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    /// `age * (1 - u) / 2u`, by hand, with 32 map units a reclaim unit.
    #[test]
    fn it_decides_as_its_source_says() {
        let mut policy = CostBenefit::new(&testing::context());
        // 100 * 8 / 48 = 16.7 and 10 * 24 / 16 = 15.
        assert_eq!(testing::pick(&mut policy, &[(24, 100), (8, 10)]), Some(0));
        // 80 * 8 / 48 = 13.3 and 15.
        assert_eq!(testing::pick(&mut policy, &[(24, 80), (8, 10)]), Some(1));
        // A unit without valid data costs nothing.
        assert_eq!(testing::pick(&mut policy, &[(1, 1_000), (0, 1)]), Some(1));
    }
}
