//! Most space gained for the data moved, weighted with age.

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
            // Fractions compare by cross-multiplication: floating point would tie differently on other machines.
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
