//! What tests of victim policies share.

use super::{Victim, VictimContext, VictimView};
use crate::page_map::index::Index;
use crate::page_map::unit::{FRESH, Ru, RuState};

/// Map units of a reclaim unit.
const UNITS: u32 = 32;

pub(super) fn context() -> VictimContext {
    VictimContext { seed: 1, device: "flash".into() }
}

/// What a policy takes back of closed reclaim units of [`UNITS`] map units, by its place among them. Each is given by its valid map
/// units and its age, the oldest first.
pub(super) fn pick(victim: &mut dyn Victim, closed: &[(u32, u64)]) -> Option<u32> {
    let mut index = Index::new(closed.len() as u32, UNITS);
    let now = closed.iter().map(|(_, age)| *age).max()?;
    for (number, (valid, _)) in closed.iter().enumerate() {
        index.insert(number as u32, *valid);
    }
    let unit = |(valid, _): &(u32, u64)| Ru { valid: *valid, state: RuState::Closed, ..FRESH };
    let rus: Vec<Ru> = closed.iter().map(unit).collect();
    let closed_at: Vec<u64> = closed.iter().map(|(_, age)| now - age).collect();
    victim.pick(&VictimView {
        index: &index,
        rus: &rus,
        closed_at: &closed_at,
        erases: &|_| 0,
        pools: None,
        now,
        units_per_ru: UNITS,
        units_per_program: 1,
    })
}
