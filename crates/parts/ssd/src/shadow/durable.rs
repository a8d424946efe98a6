//! What an answer promises about a power cut: the data is on flash, whatever the buffer holds.
//!
//! A flush promises all that was acknowledged when it was submitted. For the oracle it is a read of every unit that has
//! been in the buffer, whose answer is what flash holds when the flush is answered. A durable write promises itself.

use super::data::{Stamps, Version};
use super::{Sectors, Shadow};
use ftl::page_map::Ftl;
use proto::Lpn;

impl Shadow {
    /// What a power cut would leave of a unit.
    pub(super) fn on_flash(&self, lpn: Lpn, ftl: &Ftl) -> Stamps {
        match ftl.lookup(lpn) {
            Some(slot) => self.truth.read(slot, ftl).seen_as(lpn),
            None => Stamps::Whole(Version::ZERO),
        }
    }

    /// A flush has been submitted: the units it promises.
    pub(super) fn promises(&mut self, id: u32) -> Vec<Lpn> {
        let all = self.all_sectors();
        for lpn in &self.unsettled {
            self.oracle.begin_read(*lpn, id, all);
        }
        self.unsettled.iter().copied().collect()
    }

    /// A flush, or a durable write, has been answered: compares one unit that it promised.
    pub(super) fn keeps_promise(&mut self, lpn: Lpn, id: u32, ftl: &Ftl) {
        let found = self.on_flash(lpn, ftl);
        if let Some((version, sectors)) = self.oracle.end_flush(lpn, id, &found) {
            self.broken(lpn, version, sectors);
        }
        if self.oracle.is_settled(lpn, &found, self.all_sectors()) {
            self.unsettled.remove(&lpn);
        }
    }

    fn broken(&mut self, lpn: Lpn, version: Version, sectors: Sectors) {
        let sector = sectors.trailing_zeros();
        let unit = lpn.0;
        self.violation(format!(
            "it was promised to be on flash, which holds {version} in sector {sector} of unit {unit}"
        ));
    }

    /// All sectors of a unit.
    pub(super) fn all_sectors(&self) -> Sectors {
        Sectors::MAX >> (128 - self.unit_bytes / super::SECTOR)
    }
}
