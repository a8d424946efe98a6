//! Real drives: what was measured of them, or is printed on their data sheets, beside the same jobs on simulated ones.
//!
//! What is compared, and which figures chose a parameter: `papers/drives/README.md`.

mod axes;
mod measured;
mod published;
mod rows;
mod stands;

use super::study::Entry;
use super::{Effort, Reading};
use measured::{Measured, Set};
use stands::{SETS, STANDS};

/// Rows of every point, and the errors of all axes.
pub(super) fn entries(effort: Effort, _: &Reading) -> Vec<Entry> {
    let mut points: Vec<Measured> = SETS.iter().flat_map(Set::points).collect();
    points.extend(published::points());
    let points: Vec<_> = points.into_iter().flat_map(|measured| rows::points(measured, effort)).collect();
    let axes = axes::entries(&points);
    let absent = SETS.iter().filter_map(Set::absent);
    points.iter().map(rows::Point::entry).chain(absent).chain(axes).collect()
}

/// The stand of a name.
fn stand(name: &str) -> Option<&'static stands::Stand> {
    STANDS.iter().find(|stand| stand.name == name)
}
