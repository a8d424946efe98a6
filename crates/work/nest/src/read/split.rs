//! Whether the iterations of a loop may run at once.

use config::{Diagnostic, Place};

use super::code::Code;
use super::lower::Written;
use crate::axis::{Axis, fixed, forms, is_apart, level};
use crate::microblock::{Loop, Microblock, Split};

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
    let alike = |id: &usize| is_alike(first, &microblock.loops[*id]);
    let Some(axis) = Axis::of(microblock, name).filter(|_| loops.iter().all(alike)) else {
        return Err(fault(format!(
            "the loops over `{name}` have different bounds, so they cannot be split together"
        )));
    };
    for (statement, written) in microblock.statements.iter().zip(written) {
        if level(microblock, name, statement.parent).is_none() {
            let what = format!(
                "`{}` gets a value outside the split loop over `{name}`",
                statement.references[0].text
            );
            return Err(code
                .fault(written[0], what)
                .help("what is not split belongs into another microblock"));
        }
    }
    refuse_dependences(microblock, &axis, code, written)?;
    for id in loops {
        microblock.loops[id].is_split = true;
    }
    Ok(Split { name: name.to_owned(), trips })
}

/// Whether two loops have the same values in the same iterations, whatever the loops around them do.
fn is_alike(a: &Loop, b: &Loop) -> bool {
    a.trips == b.trips && b.most.is_none() && fixed(a).is_some() && fixed(a) == fixed(b)
}

fn refuse_dependences(
    microblock: &Microblock,
    axis: &Axis,
    code: &Code<'_>,
    written: &Written,
) -> Result<(), Diagnostic> {
    let name = &axis.name;
    let mut all = Vec::new();
    for (statement, places) in microblock.statements.iter().zip(written) {
        for (id, reference) in statement.references.iter().enumerate() {
            let forms = forms(microblock, axis, statement, reference);
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
