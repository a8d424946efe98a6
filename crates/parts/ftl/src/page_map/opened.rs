//! A second account of the free reclaim units, for the check that the one is opened which the rule names.

use super::Ftl;
use super::space::Stream;
use std::collections::BTreeMap;

/// Free reclaim units that have been erased: when, in order, and how often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    /// By group and number.
    freed: BTreeMap<(u32, u32), (u64, u32)>,
    frees: u64,
    opens: u64,
    /// Units that were opened in the place of another, and the first in words.
    wrong: u64,
    first: Option<String>,
}

impl Opened {
    /// A unit is free from now on.
    fn frees(&mut self, unit: (u32, u32), erases: u32) {
        self.frees += 1;
        self.freed.insert(unit, (self.frees, erases));
    }

    /// A unit of the erased ones, or one that was never opened before, is opened: the first one freed, the least worn of them, or
    /// for static wear levelling the most worn.
    fn opens(&mut self, (group, number): (u32, u32), least_worn: bool, most_worn: bool) {
        self.opens += 1;
        if !self.freed.contains_key(&(group, number)) {
            return;
        }
        let here = self.freed.range((group, 0)..=(group, u32::MAX));
        let here = here.map(|((_, number), (order, erases))| (*number, *order, *erases));
        let due = match (most_worn, least_worn) {
            (true, true) => here.max_by_key(|(number, _, erases)| (*erases, *number)),
            (true, false) => here.max_by_key(|(_, order, erases)| (*erases, u64::MAX - order)),
            (false, true) => here.min_by_key(|(number, _, erases)| (*erases, *number)),
            (false, false) => here.min_by_key(|(_, order, _)| *order),
        };
        if let Some((due, ..)) = due.filter(|(due, ..)| *due != number) {
            self.wrong += 1;
            self.first.get_or_insert_with(|| format!("unit {number} of group {group} instead of {due}"));
        }
        self.freed.remove(&(group, number));
    }
}

impl Ftl {
    /// Holds each opened block against the rule from here on, for streams, caches of one bit a cell and choices of pages alike.
    pub fn watch_opening(&mut self) {
        let mut opened = Opened::default();
        for (group, of_group) in (0..).zip(&self.groups) {
            for number in of_group.freed() {
                let ru = self.join(group, number);
                let erases =
                    (0..self.geo.lanes).map(|lane| self.array.erases(self.geo.block_of_ru(ru, lane)));
                opened.frees((group, number), erases.max().unwrap_or(0));
            }
        }
        self.opened = Some(Box::new(opened));
    }

    /// A unit that was erased is free.
    pub(super) fn note_freed(&mut self, group: u32, number: u32, erases: u32) {
        if let Some(opened) = &mut self.opened {
            opened.frees((group, number), erases);
        }
    }

    /// A stream opens a unit.
    pub(in crate::page_map) fn note_opened(&mut self, group: u32, number: u32, stream: Stream) {
        let most_worn = matches!(stream, Stream::Wear(_)) && self.wear.gap.is_some();
        if let Some(opened) = &mut self.opened {
            opened.opens((group, number), self.wear.least_worn, most_worn);
        }
    }

    /// Units opened while it was watched, those in the place of another, and the first of these; none if it was not.
    pub fn opened(&self) -> Option<(u64, u64, &str)> {
        let opened = self.opened.as_ref()?;
        Some((opened.opens, opened.wrong, opened.first.as_deref().unwrap_or_default()))
    }
}
