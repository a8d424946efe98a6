//! Which units static allocation sends where.

use nand::geometry::Geometry;

/// Units `0..units` that static allocation sends to a group.
pub(super) fn units_of_group(geo: &Geometry, group: u32, units: u64) -> u64 {
    let per_program = u64::from(geo.units_per_program);
    let groups = u64::from(geo.groups);
    let position = geo.sequential_unit(group, 0, 0) / per_program;
    let (stripes, rest) = (units / per_program, units % per_program);
    let whole = (stripes + groups - 1 - position) / groups;
    whole * per_program + if stripes % groups == position { rest } else { 0 }
}

/// Unit number `nth` of those that static allocation sends to a group.
pub(super) fn unit_of_group(geo: &Geometry, group: u32, nth: u64) -> u64 {
    let per_program = u64::from(geo.units_per_program);
    geo.sequential_unit(group, nth / per_program, (nth % per_program) as u32)
}
