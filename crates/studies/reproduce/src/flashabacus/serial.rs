//! Figures 3b and 3c: a kernel of whose work a share is serial, on the rival's cores.

use super::super::expected::Figure;
use super::super::study::{Entry, Point};
use super::suite::{SIMD, Suite};
use super::{of_work, work};

/// Rows of the kernel.
const ROWS: u32 = 100_000;

/// So many per cent of them in the serial microblock, which has one row at least.
fn point(suite: &Suite, percent: u32) -> Point {
    let serial = (ROWS / 100 * percent).max(1);
    suite.point(SIMD, &format!("serial:p={},s={serial}", ROWS - serial))
}

/// What is lost of the throughput of the same work without a serial part, per cent.
pub(super) fn loss(figure: &Figure, suite: &Suite, percent: u32) -> Entry {
    let [none, some] = [0, percent].map(|percent| point(suite, percent));
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, vec![none.clone(), some.clone()], move |found| {
        let (none, some) = (work(found.get(&none)?)?, work(found.get(&some)?)?);
        figure.row(100.0 * (1.0 - none / some), "of the accelerator's work, without transfers")
    })
}

/// The share of the work's time in which cores compute, per cent.
pub(super) fn utilisation(figure: &Figure, suite: &Suite, percent: u32) -> Entry {
    let point = point(suite, percent);
    let (id, figure) = (figure.id.clone(), figure.clone());
    let used = suite.choices.utilisation();
    Entry::new(id, vec![point.clone()], move |found| {
        figure.row(of_work(found.get(&point)?, used)?, "of the accelerator's work, without transfers")
    })
}
