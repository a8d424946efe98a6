//! What is physically in the planes' page registers.
//!
//! A read that the device serves from a register gets what the last sensing has left there. Whatever else goes through a
//! die's registers destroys it: the device must not take such a page for one that is still held.

use super::Shadow;
use super::data::{Content, Stamps, Version};
use ftl::page_map::Ftl;
use nand::dies::op::{Op, OpKind};
use proto::{Lpn, Slot};
use rustc_hash::FxHashMap;

/// The page that was sensed last, by die and plane; of a plane that is not named nothing is known.
#[derive(Default)]
pub(super) struct Registers {
    is_watched: bool,
    held: FxHashMap<(u32, u8), Vec<(Slot, Content)>>,
}

impl Shadow {
    /// The device serves reads from registers.
    pub(crate) fn watch_registers(&mut self) {
        self.registers.is_watched = true;
    }

    /// The array of a die has done its work: an operation's data is in the register, or was there.
    #[cold]
    pub(crate) fn sensed(&mut self, name: u32, op: &Op, from_register: bool, ftl: &Ftl) {
        if !matches!(op.kind, OpKind::Read | OpKind::CopyBack) {
            return;
        }
        if self.registers.is_watched && !from_register && op.kind == OpKind::Read {
            let page = ftl.geo.page_name(op.slot);
            let units = u64::from(ftl.geo.units_per_page());
            let slots = (page * units..(page + 1) * units).map(Slot);
            let held = slots.map(|slot| (slot, self.truth.read(slot, ftl))).collect();
            self.registers.held.insert((op.die, op.plane), held);
        }
        let Some(errand) = self.errands.get_mut(name as usize) else { return };
        let held = self.registers.held.get(&(op.die, op.plane)).filter(|_| from_register);
        let lost = || Content::new(Lpn(u64::MAX), Stamps::Whole(Version::BLANK));
        let read = |slot: &Slot| match held {
            Some(held) => held.iter().find(|(s, _)| s == slot).map_or_else(lost, |(_, c)| c.clone()),
            None => self.truth.read(*slot, ftl),
        };
        errand.data = errand.slots.iter().map(read).collect();
    }

    /// Something has gone through the registers of a die.
    pub(super) fn destroys_registers(&mut self, op: &Op, ftl: &Ftl) {
        if self.registers.is_watched {
            let planes = 0..ftl.geo.die_planes as u8;
            self.registers.held.extend(planes.map(|plane| ((op.die, plane), Vec::new())));
        }
    }
}
