//! Section VI-D: how many requests garbage collection blocks. The paper cites the figure from drives of its reference [80]; here a
//! drive that is worn in serves what AstriFlash asks of it.

use super::super::Effort;
use super::super::expected::Figure;
use super::super::row::Row;
use super::super::study::{Entry, Found, Point};
use super::suite::Suite;
use super::{behind_gc, service_p99, throughput};
use config::Diagnostic;

/// What is changed: the drive is new, pages are copied inside their plane, collection goes on before the host does, there is four
/// times the flash (the paper's 1 TB), or more spare space.
const CHANGES: [(&str, &[&str]); 5] = [
    ("fresh", &["flash.precondition=sequential"]),
    ("copied_in_plane", &["flash.ftl.gc.copy_back=true"]),
    ("foreground", &["flash.ftl.gc.mode=foreground"]),
    ("four_times_planes", &["flash.geometry.channels=16"]),
    ("spare_28", &["flash.ftl.over_provisioning=28%", "flash.geometry.blocks=3836"]),
];

/// The paper's row, and what moves it.
pub(super) fn entries(figure: &Figure, suite: &Suite, effort: Effort) -> Vec<Entry> {
    if effort != Effort::Whole {
        return Vec::new();
    }
    let changed = CHANGES.iter().map(|(name, sets)| {
        let point = sets.iter().fold(suite.aged(), |point, set| point.set(set));
        entry(figure, point).changed(format!("astriflash.gc.{name}"), Row::swept)
    });
    std::iter::once(entry(figure, suite.aged())).chain(changed).collect()
}

fn entry(figure: &Figure, point: Point) -> Entry {
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, vec![point.clone()], move |found| row(&figure, found, &point))
}

fn row(figure: &Figure, found: &Found, point: &Point) -> Result<Row, Diagnostic> {
    let document = found.get(point)?;
    let note = format!(
        "reads that come to a die at work for collection; {:.0} jobs/s, p99 of service {:.0} us",
        throughput(document)?,
        service_p99(document)? / 1e3
    );
    figure.row(100.0 * behind_gc(document)?, note)
}
