//! Checks of lines that are on their way from a processor to memory: what was changed is written, or still there.

use flash::Check;
use mem::l2::L2;

fn equal(name: &'static str, (left, a): (&str, u64), (right, b): (&str, u64)) -> Check {
    Check { name, ok: a == b, detail: format!("{left} {a}, {right} {b}") }
}

/// Of pages that registers of flash hand to the shared cache: `given_up` lines have left the registers.
pub(crate) fn of_parked_pages(l2: &L2, given_up: u64) -> Check {
    equal(
        "lines that registers hand back are parked",
        ("left the registers", given_up),
        ("parked", l2.ledger().parked),
    )
}

/// Of the shared cache; `sent` lines have come from it for memory.
pub(crate) fn of_shared_cache(l2: &L2, sent: u64) -> Vec<Check> {
    let ledger = l2.ledger();
    let mut checks = vec![equal(
        "dirty lines of the shared cache reach memory or are there",
        ("made dirty or written through", ledger.dirtied + ledger.through),
        ("sent to memory or dirty", sent + l2.dirty()),
    )];
    checks.push(Check {
        name: "memory answers what the shared cache has asked for, once",
        ok: ledger.unasked == 0,
        detail: format!("{} answers that nothing waited for", ledger.unasked),
    });
    if let Some(found) = l2.shadowed() {
        let first = found.first.unwrap_or_default();
        checks.push(Check {
            name: "reads of the shared cache bring what was stored",
            ok: found.wrong == 0,
            detail: format!("{} of {} reads were wrong: {first}", found.wrong, found.compared),
        });
        checks.push(Check {
            name: "no stored line is lost",
            ok: found.lost == 0,
            detail: format!("{} of {} lines are out of date wherever they are", found.lost, found.stored),
        });
    }
    checks
}
