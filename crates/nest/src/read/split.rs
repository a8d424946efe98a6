//! Whether the iterations of a loop may run at once.

use config::{Diagnostic, Place};

use super::code::Code;
use super::lower::Written;
use crate::affine::Affine;
use crate::microblock::{Loop, Microblock, Reference, Split, Statement};
use crate::piece::Piece;

/// Makes a loop the one whose iterations are dealt out as screens. `place` is that of its name in the file.
///
/// The loops of that name must stand around all statements, with the same fixed bounds. Two iterations must not touch the same element
/// if one of them writes it; what is shown for that is sufficient, not necessary: of every two references to an array, one of them a
/// store, each dimension that has the variable times the same factor in both says how many iterations may lie between the two if
/// they are the same element, and no number but none is left by all of them.
pub(super) fn split(
    microblock: &mut Microblock,
    name: &str,
    place: Place,
    code: &Code<'_>,
    written: &Written,
) -> Result<Split, Diagnostic> {
    let fault = |what: String| Diagnostic::new(what).at(place.clone());
    let loops: Vec<usize> =
        (0..microblock.loops.len()).filter(|id| microblock.loops[*id].name == name).collect();
    let Some(first) = loops.first().map(|id| &microblock.loops[*id]) else {
        let mut names: Vec<String> = microblock.loops.iter().map(|one| one.name.clone()).collect();
        names.sort();
        names.dedup();
        return Err(fault(format!("no loop over `{name}` is in this microblock")).allowed(name, names));
    };
    let trips = match (first.trips.as_number(), first.most) {
        (Some(trips), None) => u64::try_from(trips).unwrap_or(0),
        _ => {
            return Err(fault(format!(
                "the bounds of `{name}` depend on other loops, so it cannot be split"
            )));
        }
    };
    if !loops.iter().all(|id| is_alike(first, &microblock.loops[*id])) {
        return Err(fault(format!(
            "the loops over `{name}` have different bounds, so they cannot be split together"
        )));
    }
    for (statement, written) in microblock.statements.iter().zip(written) {
        if split_level(microblock, name, statement.parent).is_none() {
            let what = format!(
                "`{}` gets a value outside the split loop over `{name}`",
                statement.references[0].text
            );
            return Err(code
                .fault(written[0], what)
                .help("what is not split belongs into another microblock"));
        }
    }
    refuse_dependences(microblock, name, code, written)?;
    for id in loops {
        microblock.loops[id].is_split = true;
    }
    Ok(Split { name: name.to_owned(), trips })
}

/// Whether two loops have the same values in the same iterations, whatever the loops around them do.
fn is_alike(a: &Loop, b: &Loop) -> bool {
    let fixed = |one: &Loop| {
        let mut value = one.value;
        let by = std::mem::take(&mut value.by[one.level]);
        value.as_number().map(|from| (from, by))
    };
    a.trips == b.trips && b.most.is_none() && fixed(a).is_some() && fixed(a) == fixed(b)
}

/// The level of the split loop around a place.
fn split_level(microblock: &Microblock, name: &str, parent: Option<usize>) -> Option<usize> {
    let (chain, depth) = microblock.chain(parent);
    chain[..depth].iter().map(|id| &microblock.loops[*id]).find(|one| one.name == name).map(|one| one.level)
}

/// A subscript as the test sees it.
struct Form {
    /// What one more iteration of the split loop adds.
    factor: i64,
    /// The least and the most of the rest.
    rest: (i64, i64),
}

fn forms(microblock: &Microblock, name: &str, statement: &Statement, reference: &Reference) -> Vec<Form> {
    let level = split_level(microblock, name, statement.parent).unwrap_or(0);
    let domain = Piece::whole(0).domain(microblock, statement.parent, None).unwrap_or_default();
    let form = |subscript: &Affine| {
        let mut rest = *subscript;
        let factor = std::mem::take(&mut rest.by[level]);
        let mut reach: Option<(i64, i64)> = None;
        domain.each(&mut |side| {
            let mut side = *side;
            if side.tighten() {
                let (least, most) = side.range(rest);
                reach = Some(reach.map_or((least, most), |own| (own.0.min(least), own.1.max(most))));
            }
        });
        Form { factor, rest: reach.unwrap_or((0, 0)) }
    };
    reference.subscripts.iter().map(form).collect()
}

/// Whether two references that are the same element are so in the same iteration of the split loop.
fn is_apart(a: &[Form], b: &[Form]) -> bool {
    // How many iterations the first may be behind the second, by the dimensions so far.
    let (mut least, mut most) = (i64::MIN, i64::MAX);
    for (a, b) in a.iter().zip(b).filter(|(a, b)| a.factor == b.factor) {
        // `factor * iterations` makes up for what the rest of the second is beyond that of the first.
        let (low, high) = (b.rest.0 - a.rest.1, b.rest.1 - a.rest.0);
        let factor = a.factor.abs();
        if factor == 0 {
            if low > 0 || high < 0 {
                return true;
            }
            continue;
        }
        let (low, high) = if a.factor > 0 { (low, high) } else { (-high, -low) };
        least = least.max(-(-low).div_euclid(factor));
        most = most.min(high.div_euclid(factor));
    }
    least > most || (least, most) == (0, 0)
}

fn refuse_dependences(
    microblock: &Microblock,
    name: &str,
    code: &Code<'_>,
    written: &Written,
) -> Result<(), Diagnostic> {
    let mut all = Vec::new();
    for (statement, places) in microblock.statements.iter().zip(written) {
        for (id, reference) in statement.references.iter().enumerate() {
            let forms = forms(microblock, name, statement, reference);
            all.push((reference, id == 0, places[id], forms));
        }
    }
    for (stored, _, at, forms) in all.iter().filter(|(_, is_store, ..)| *is_store) {
        let same = all.iter().filter(|(other, ..)| other.array == stored.array);
        for (other, _, beside, others) in same {
            if !is_apart(forms, others) {
                let what = format!(
                    "iterations of `{name}` may depend on each other: one writes `{}` (line {}), another has `{}` (line {})",
                    stored.text,
                    code.line(*at),
                    other.text,
                    code.line(*beside),
                );
                let help = format!(
                    "every reference to an array that is written needs `{name}` in the same dimension in the same form; \
                     or leave `split` out: the microblock is then serial"
                );
                return Err(code.fault(*at, what).help(help));
            }
        }
    }
    Ok(())
}
