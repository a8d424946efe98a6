//! Root search for a rising function.

/// Relative tolerance of the target.
pub(super) const TOLERANCE: f64 = 0.002;
/// Maximum number of evaluations.
const LOOKS: u32 = 24;
/// Relative width of an interval that cannot be refined.
const NARROW: f64 = 1e-5;

/// Search range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) least: f64,
    /// Start of the search.
    pub(super) start: f64,
    pub(super) most: f64,
}

/// Result of a search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Found {
    /// Nearest argument.
    pub(super) at: f64,
    /// Value of the function there.
    pub(super) reached: f64,
}

impl Found {
    fn misses(&self, target: f64) -> f64 {
        (self.reached / target - 1.0).abs()
    }
}

/// Finds the argument at which the non-decreasing `f` equals `target`, or the nearest end of the range. By false
/// position with the Illinois rule (Dowell and Jarratt, BIT 11, 1971), by bisection where that is slow: functions here
/// have kinks, where one limit takes over from another.
///
/// # Errors
/// The error of the function.
pub(super) fn search<E>(
    target: f64,
    range: Range,
    mut f: impl FnMut(f64) -> Result<f64, E>,
) -> Result<Found, E> {
    let mut best: Option<Found> = None;
    let mut look = |at: f64| {
        let found = Found { at, reached: f(at)? };
        if best.is_none_or(|best| found.misses(target) <= best.misses(target)) {
            best = Some(found);
        }
        Ok((found, best.unwrap_or(found)))
    };
    let (first, _) = look(range.start)?;
    if first.misses(target) < TOLERANCE {
        return Ok(first);
    }
    let (mut low, mut high) = (first, first);
    if first.reached > target {
        (low, _) = look(range.least)?;
        if low.reached >= target {
            return Ok(low);
        }
    } else {
        let mut step = range.start.max(range.most / 1024.0);
        while high.reached < target {
            if high.at >= range.most {
                return Ok(high);
            }
            low = high;
            let (next, best) = look((high.at + step).min(range.most))?;
            if best.misses(target) < TOLERANCE {
                return Ok(best);
            }
            (high, step) = (next, 2.0 * step);
        }
    }
    let (mut below, mut above) = (low.reached - target, high.reached - target);
    let mut nearest = if low.misses(target) < high.misses(target) { low } else { high };
    let (mut low, mut high, mut width) = (low.at, high.at, high.at - low.at);
    let mut rose = None;
    for turn in 0..LOOKS {
        if nearest.misses(target) < TOLERANCE || high - low < NARROW * high {
            break;
        }
        let slow = turn % 3 == 2 && high - low > 0.3 * width;
        if turn % 3 == 2 {
            width = high - low;
        }
        let at = if slow { (low + high) / 2.0 } else { (low * above - high * below) / (above - below) };
        let (found, best) = look(at)?;
        nearest = best;
        let rises = found.reached < target;
        // An end kept twice counts half, so that it is not kept forever.
        let share = if rose == Some(rises) { 0.5 } else { 1.0 };
        if rises {
            (low, below, above) = (at, found.reached - target, above * share);
        } else {
            (high, above, below) = (at, found.reached - target, below * share);
        }
        rose = Some(rises);
    }
    Ok(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const RANGE: Range = Range { least: 0.0, start: 10.0, most: 1_000.0 };

    fn found(target: f64, f: impl Fn(f64) -> f64) -> (Found, u32) {
        let mut looks = 0;
        let found = search(target, RANGE, |at| {
            looks += 1;
            Ok::<_, Infallible>(f(at))
        });
        let Ok(found) = found;
        (found, looks)
    }

    #[test]
    fn it_is_found_on_both_sides_of_where_the_search_begins() {
        for target in [3.0, 9.0, 11.0, 40.0, 900.0] {
            let (at, looks) = found(target, |x| x + 1.0);
            assert!(
                (at.at + 1.0 - target).abs() < 2.0 * TOLERANCE * target && looks < 14,
                "{target}: {at:?}, {looks}"
            );
        }
    }

    #[test]
    fn a_kink_costs_some_looks() {
        // Another limit until 50, as a controller behind dies.
        for target in [5.5, 7.0, 60.0] {
            let (at, looks) = found(target, |x| (x / 10.0).max(5.0));
            assert!(
                (at.at - 10.0 * target).abs() < 3.0 * TOLERANCE * 10.0 * target && looks < 20,
                "{target}: {at:?}, {looks}"
            );
        }
    }

    #[test]
    fn a_step_ends_the_search() {
        let (at, looks) = found(7.0, |x| if x < 300.0 { 1.0 } else { 10.0 });
        assert!((at.at - 300.0).abs() < 20.0 && looks < 40, "{at:?}, {looks}");
    }

    #[test]
    fn what_is_nowhere_is_the_nearest_end() {
        assert_eq!(found(0.5, |x| x + 1.0).0, Found { at: 0.0, reached: 1.0 });
        assert_eq!(found(5_000.0, |x| x + 1.0).0, Found { at: 1_000.0, reached: 1_001.0 });
    }
}
