//! Checks of lines between a processor and memory: changed data are written, or still present.

use compute::ooo::Cores;
use mem::directory::Directory;
use mem::dram_cache::DramCache;
use mem::l2::L2;
use ssd::Check;

fn equal(name: &'static str, (left, a): (&str, u64), (right, b): (&str, u64)) -> Check {
    Check { name, ok: a == b, detail: format!("{left} {a}, {right} {b}") }
}

/// Checks pages that flash registers hand to the shared cache: `given_up` lines have left the registers.
pub(crate) fn of_parked_pages(l2: &L2, given_up: u64) -> Check {
    equal(
        "lines that registers hand back are parked",
        ("left the registers", given_up),
        ("parked", l2.ledger().parked),
    )
}

/// Checks the shared cache, which has sent `sent` lines to memory.
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
        detail: format!("{} unexpected answers", ledger.unasked),
    });
    if let Some(found) = l2.shadowed() {
        let first = found.first.unwrap_or_default();
        checks.push(Check {
            name: "reads of the shared cache bring what was stored",
            ok: found.wrong == 0,
            detail: format!("{} of {} reads returned wrong data: {first}", found.wrong, found.compared),
        });
        checks.push(Check {
            name: "no stored line is lost",
            ok: found.lost == 0,
            detail: format!("{} of {} lines have no current copy anywhere", found.lost, found.stored),
        });
    }
    checks
}

/// Checks a DRAM cache.
pub(crate) fn of_dram_cache(cache: &DramCache) -> Check {
    let (changed, found) = cache.changed_pages();
    Check {
        name: "changed pages of the DRAM cache reach flash or are there",
        ok: changed == found,
        detail: format!("{changed} changed, {found} sent to flash or present"),
    }
}

/// Checks cores, while no message is under way.
pub(crate) fn of_cores(cores: &Cores, directory: &Directory, l2: &L2) -> Vec<Check> {
    let (changed, held) = cores.changed_lines();
    let (came, writes) = (directory.ledger(), l2.ledger().writes);
    vec![
        Check {
            name: "lines that cores have changed come back or are there",
            ok: changed == came.came + held,
            detail: format!("{changed} changed, {} came back, {held} present", came.came),
        },
        Check {
            name: "changed lines go to the next owner or to their bank",
            ok: came.came == came.passed_on + writes,
            detail: format!("{} came back, {} to an owner, {writes} to banks", came.came, came.passed_on),
        },
    ]
}

/// Checks the directory's knowledge of lines that are in no transaction. In a stuck run it explains the wait: a core
/// waits for one that no longer has a copy, or has one that the directory does not know.
pub(crate) fn of_copies(cores: &Cores, directory: &Directory) -> Vec<Check> {
    let mut copies = 0;
    let quiet = cores.copies().filter(|(_, address, _)| !directory.is_busy(*address));
    let unknown = quiet.filter(|(core, address, alone)| {
        copies += 1;
        !directory.knows(*core, *address, *alone)
    });
    let (unknown, known) = (unknown.count(), directory.known_copies());
    let unasked = directory.unasked_owners();
    vec![
        Check {
            name: "the directory knows every copy, and no other",
            ok: unknown == 0 && copies == known,
            detail: format!("{copies} copies, {unknown} of them unknown, {known} known"),
        },
        Check {
            name: "owners that are waited for have been asked",
            ok: unasked == 0,
            detail: format!("{unasked} transactions wait for a copy that no probe requested"),
        },
    ]
}
