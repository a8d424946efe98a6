//! What follows from constants.

use super::super::expected::Figure;
use super::super::study::Entry;
use super::suite::INTRA_O3;
use config::Diagnostic;
use ftl::page_groups::spec::ENTRY_BYTES;
use machine::spec::Loaded;

/// The flash of section 4.3.
const FLASH_BYTES: u64 = 32 << 30;

/// A figure's entry; none if it is no constant.
pub(super) fn entry(figure: &Figure) -> Option<Entry> {
    (figure.id == "flashabacus.map.table_size_32gb").then(|| map(figure))
}

/// An entry for each page group of the system's, over 32 GB.
fn map(figure: &Figure) -> Entry {
    let figure = figure.clone();
    Entry::new(figure.id.clone(), Vec::new(), move |_| {
        let loaded = Loaded::load(INTRA_O3, &[])?;
        let part = loaded.spec.group_flash.first();
        let groups = &part.ok_or_else(|| Diagnostic::new("no flash of page groups"))?.spec.groups.geometry;
        let group = u64::from(groups.channels) * u64::from(groups.planes) * groups.page.get();
        let entries = FLASH_BYTES / group;
        let note = format!("{entries} groups of {} KiB, {} B each", group >> 10, ENTRY_BYTES);
        figure.row((entries * ENTRY_BYTES) as f64 / 1024.0, note)
    })
}
