//! Properties of every iteration, proved at the corners of the loops' domain.

use config::Diagnostic;

use super::Code;
use super::lower::Written;
use super::syntax::For;
use crate::domain::{Affine, DEPTH, Domain, Level, Point};
use crate::kernel::{Array, Microblock};
use crate::piece::Piece;

/// Limit of intermediate subscripts and trip counts; a kernel that exceeds it is refused.
const LARGEST: i128 = 1 << 60;

/// Limit of terms of polynomials, before terms of opposite signs are added.
const LARGEST_TERM: i128 = 1 << 90;

/// Proves that the number of iterations of a loop is not negative and can be counted.
pub(super) fn trips(
    microblock: &Microblock,
    id: usize,
    code: &Code<'_>,
    written: &For,
) -> Result<(), Diagnostic> {
    let one = &microblock.loops[id];
    let Some(domain) = Piece::whole(0).domain(microblock, Some(id), None) else { return Ok(()) };
    let product = |sizes: [i128; DEPTH]| sizes.iter().try_fold(1i128, |product, n| product.checked_mul(*n));
    let is_counted = product(most_trips(&domain)).is_some_and(|trips| trips <= LARGEST)
        && product(largest(&domain)).is_some_and(|term| term <= LARGEST_TERM);
    if !is_counted {
        let what = format!("the loop over `{}` may run more than 2^60 times", one.name);
        return Err(code.fault(written.at, what));
    }
    let mut fault = None;
    domain.each(&mut |side| {
        let mut around = *side;
        around.depth -= 1;
        let trips = side.levels[around.depth].below;
        if around.tighten() && around.range(trips).0 < 0 {
            fault = Some(around.point(trips, false));
        }
    });
    let Some(point) = fault else { return Ok(()) };
    let what = format!(
        "the loop over `{}` would run backwards{}",
        one.name,
        values(microblock, one.parent, &point, &one.trips)
    );
    Err(code.fault(written.below.at, what).help("the upper bound must not be below the lower bound"))
}

/// Proves that every subscript is inside its array.
pub(super) fn subscripts(
    arrays: &[Array],
    microblock: &Microblock,
    code: &Code<'_>,
    written: &Written,
) -> Result<(), Diagnostic> {
    for (statement, written) in microblock.statements.iter().zip(written) {
        for (reference, at) in statement.references.iter().zip(written) {
            let array = &arrays[reference.array];
            for (dimension, subscript) in reference.subscripts.iter().enumerate() {
                let n = i64::try_from(array.shape[dimension]).unwrap_or(i64::MAX);
                let Some((value, point)) = outside(microblock, statement.parent, subscript, n) else {
                    continue;
                };
                let what = format!(
                    "`{}` is outside its array: subscript {} would be {value}{}; `{}` allows 0 to {} there",
                    reference.text,
                    dimension + 1,
                    values(microblock, statement.parent, &point, subscript),
                    array.name,
                    n - 1,
                );
                let help = "start the enclosing loops later, end them earlier, or enlarge the array";
                return Err(code.fault(*at, what).help(help));
            }
        }
    }
    Ok(())
}

/// Returns a value of a subscript outside of 0 to `n` - 1, and where it occurs.
fn outside(
    microblock: &Microblock,
    parent: Option<usize>,
    subscript: &Affine,
    n: i64,
) -> Option<(i64, Point)> {
    let domain = Piece::whole(0).domain(microblock, parent, None)?;
    let most = largest(&domain);
    let reach = subscript.by.iter().zip(most).map(|(by, most)| i128::from(by.unsigned_abs()) * most);
    let reach = reach.fold(i128::from(subscript.constant.unsigned_abs()), i128::saturating_add);
    let mut found = None;
    domain.each(&mut |side| {
        let mut side = *side;
        if !side.tighten() {
            return;
        }
        let (least, most) = side.range(*subscript);
        if least < 0 {
            found = Some((least, side.point(*subscript, false)));
        } else if most >= n || reach > LARGEST {
            found = Some((most, side.point(*subscript, true)));
        }
    });
    found
}

/// Returns the maximum iterations of each loop if all numbers in its bounds had the same sign.
fn largest(domain: &Domain) -> [i128; DEPTH] {
    let mut most = [1i128; DEPTH];
    for level in 0..domain.depth {
        let Level { from, below, most: side } = domain.levels[level];
        let size = |sum: &Affine| {
            let terms = sum
                .by
                .iter()
                .zip(&most)
                .map(|(by, most)| i128::from(by.unsigned_abs()).saturating_mul(*most));
            terms.fold(i128::from(sum.constant.unsigned_abs()), i128::saturating_add)
        };
        let side = side.map_or(0, |side| size(&side));
        most[level] = size(&below).max(size(&from)).max(side).max(1);
    }
    most
}

/// Returns the maximum iterations of each loop; at least 1.
fn most_trips(domain: &Domain) -> [i128; DEPTH] {
    let mut most = [1i128; DEPTH];
    for level in 0..domain.depth {
        let reach = |sum: &Affine| {
            let terms =
                sum.by.iter().zip(&most).map(|(by, most)| i128::from((*by).max(0)).saturating_mul(most - 1));
            terms.fold(i128::from(sum.constant), i128::saturating_add)
        };
        let Level { below, most: side, .. } = domain.levels[level];
        let below = reach(&below);
        most[level] = side.map_or(below, |side| below.min(reach(&side))).max(1);
    }
    most
}

/// Formats ` where `i` = 3 and `j` = 4`: the loops that change a sum.
fn values(microblock: &Microblock, parent: Option<usize>, point: &Point, sum: &Affine) -> String {
    let (chain, depth) = microblock.chain(parent);
    let meant = chain[..depth].iter().map(|id| &microblock.loops[*id]);
    let told: Vec<String> = meant
        .filter(|one| sum.by[one.level] != 0)
        .map(|one| format!("`{}` = {}", one.name, one.value.at(point)))
        .collect();
    if told.is_empty() { String::new() } else { format!(" where {}", told.join(" and ")) }
}
