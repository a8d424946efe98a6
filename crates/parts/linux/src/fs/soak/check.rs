//! What is left after the power went, held against what was promised.

use super::{Cell, Outcome, World};
use crate::fs::{JournalMode, Recovered, RecoveredFile};
use crate::{Inode, PAGE};
use std::collections::BTreeMap;

/// What a page reads as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Zeroes,
    Version(u32),
    /// What was in its block before.
    Stale,
}

impl World {
    /// The power goes.
    pub(super) fn cut(mut self) -> Outcome {
        let cells = self.drive.cut(&mut self.rng);
        let recovered = self.fs.recover(|block| match cells.get(&block) {
            Some(Cell::Meta(content)) => Some(*content),
            _ => None,
        });
        let stats = &self.fs.stats;
        let mut outcome = Outcome {
            acknowledged: self.acknowledged,
            commits: stats.log_commits,
            checkpoints: stats.checkpoints,
            ..Outcome::default()
        };
        match recovered {
            Err(fault) => outcome.faults.push(format!("{fault:?}")),
            Ok(recovered) => {
                outcome.replayed = recovered.replayed;
                self.check_promises(&recovered, &cells, &mut outcome);
                self.check_stale(&recovered, &cells, &mut outcome);
            }
        }
        outcome
    }

    fn check_promises(&self, recovered: &Recovered, cells: &BTreeMap<u64, Cell>, outcome: &mut Outcome) {
        for (file, known) in self.files.iter().enumerate() {
            let Some(promise) = &known.promise else { continue };
            let Some(found) = recovered.files.get(&Inode(file as u32)) else {
                outcome.faults.push(format!("file {file} is gone"));
                continue;
            };
            if found.size < promise.size {
                let (has, promised) = (found.size, promise.size);
                outcome.faults.push(format!("file {file} has {has} bytes, and {promised} were promised"));
            }
            outcome.promised += promise.pages.len() as u64;
            for (page, version) in &promise.pages {
                let seen = self.seen(found, cells, file, *page);
                if !matches!(seen, Seen::Version(seen) if seen >= *version) {
                    outcome.faults.push(format!(
                        "file {file} page {page}: {seen:?}, and version {version} was promised"
                    ));
                }
            }
        }
    }

    fn check_stale(&self, recovered: &Recovered, cells: &BTreeMap<u64, Cell>, outcome: &mut Outcome) {
        for (inode, found) in &recovered.files {
            let file = inode.0 as usize;
            for extent in found.extents().filter(|extent| !extent.unwritten) {
                let end = (extent.page + extent.pages).min(found.size.div_ceil(PAGE));
                let stale =
                    (extent.page..end).filter(|page| self.seen(found, cells, file, *page) == Seen::Stale);
                outcome.stale += stale.count() as u64;
            }
        }
        let may = matches!(self.spec.data, JournalMode::writeback | JournalMode::none);
        if outcome.stale > 0 && !may {
            outcome.faults.push(format!("{} pages show what was in their blocks before", outcome.stale));
        }
    }

    fn seen(&self, found: &RecoveredFile, cells: &BTreeMap<u64, Cell>, file: usize, page: u64) -> Seen {
        if let Some(tid) = found.journaled(page) {
            return self
                .copies
                .get(&(tid, file, page))
                .map_or(Seen::Stale, |version| Seen::Version(*version));
        }
        let extent = found.extents().find(|extent| extent.page <= page && page < extent.page + extent.pages);
        let Some(extent) = extent.filter(|extent| !extent.unwritten) else { return Seen::Zeroes };
        match cells.get(&(extent.block + (page - extent.page))) {
            Some(Cell::Page { file: of, page: at, version }) if *of == file && *at == page => {
                Seen::Version(*version)
            }
            _ => Seen::Stale,
        }
    }
}
