//! Saving and loading the translation layer.

use super::space::Group;
use super::{Ftl, FtlCounters};
use engine::Snapshot;
use nand::array::NandArray;
use nand::base::Base;
use nand::sparse::{Bits, Table, length_ahead};

impl Ftl {
    /// Appends the state, that of the victim policy included; geometry, thresholds and policies are not part of it.
    pub fn save(&self, out: &mut Vec<u8>) {
        // Naming every field makes a forgotten one a compile error.
        let Ftl {
            geo: _,
            array,
            map,
            valid,
            base,
            groups,
            victim,
            wear: _,
            placements: _,
            isolated: _,
            thresholds: _,
            clock,
            counters,
            mapped,
            logical: _,
            hidden: _,
            bad,
            pages,
            slc,
            opened: _,
        } = self;
        array.save(out);
        map.save(out);
        valid.save(out);
        base.save(out);
        groups.save(out);
        clock.save(out);
        counters.save(out);
        mapped.save(out);
        bad.save(out);
        if let Some(pages) = pages {
            pages.save(out);
            array.save_skips(out);
        }
        slc.iter().for_each(|slc| slc.save(out));
        victim.save(out);
    }

    /// Replaces the state by one that a translation layer of the same parameters saved; `None` if it is cut short or
    /// malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.opened = None;
        // Lengths first: a damaged one must end in `None`, not in a giant allocation.
        let ahead = |input: &[u8], len: u64| (length_ahead(input)? == len).then_some(());
        ahead(input, self.geo.slots)?;
        self.array = NandArray::load(input).filter(|array| array.is_like(&self.array))?;
        ahead(input, self.logical + self.hidden)?;
        self.map = Table::load(input).filter(|map| map.is_like(&self.map))?;
        ahead(input, self.geo.slots.div_ceil(64))?;
        self.valid = Bits::load(input).filter(|valid| valid.is_like(&self.valid))?;
        self.base = Base::load(input)?;
        let groups = Vec::<Group>::load(input).filter(|groups| groups.len() == self.groups.len())?;
        if !groups.iter().zip(&self.groups).all(|(group, built)| group.fits(built)) {
            return None;
        }
        self.groups = groups;
        self.clock = u64::load(input)?;
        self.counters = FtlCounters::load(input)?;
        self.mapped = u64::load(input)?;
        self.bad.load(input)?;
        if let Some(pages) = &mut self.pages {
            pages.load(input)?;
            self.array.load_skips(input, &self.geo)?;
        }
        if let Some(slc) = &mut self.slc {
            slc.load(input)?;
        }
        self.victim.load(input)
    }
}
