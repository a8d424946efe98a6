//! Which page of its open blocks a group programs next for the host, where pages of a block take different times.
//!
//! In order, a group has one open reclaim unit for the host, and its pages are programmed one after another. Otherwise several may be
//! open, each known by the type of its next page, and a page may be skipped: what is evicted in the foreground then goes to fast
//! pages only. A skipped page holds nothing, and stays so until its block is erased; garbage collection finds it as it finds any
//! page without valid data. Only data of the host chooses: what is moved, and the map, is written in order.

pub mod by_type;
pub mod in_order;
mod open;
pub mod write_point;

pub(crate) use open::Pages;

use crate::buffer::destage::Pace;

/// Most types of pages: bits of a cell.
pub const TYPES: usize = 4;

config::policies! {
    /// Which page a group programs next for the host. Types of pages are those of `cell.layout`; the first is the fastest.
    pub family PageOrder: dyn PageChoice, context () {
        /// The next one of the open reclaim unit, whatever it is.
        default in_order => |_: &()| in_order::InOrder,
        /// The next one, but what is evicted in the foreground goes to the next page of the first type: those before it are
        /// skipped.
        ///
        /// The write point of Grupp et al. (MICRO 2009), as FastDrain (section 3.2) describes it.
        write_point(write_point::Params) => |p: &write_point::Params, _: &()| write_point::WritePoint::new(p),
        /// That of any open reclaim unit whose next page has the type that is wanted: the first for what is evicted in the
        /// foreground, another one first for what is evicted in the background.
        ///
        /// FastDrain's latency-aware FTL (section 3.2): block pointers in lists by the type of their next page, for each die.
        /// Pages are skipped only if no reclaim unit has a page of the first type and none can be opened.
        by_type(by_type::Params) => |p: &by_type::Params, _: &()| by_type::ByType::new(p),
    }
}

/// What a policy sees of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenUnits {
    /// Open reclaim units by the type of their next page.
    pub of_type: [u32; TYPES],
    /// Whether one more may be opened: it begins with a page of the first type.
    pub may_open: bool,
    /// Whether pages may be skipped in the unit that is next among those of a type.
    pub may_skip: [bool; TYPES],
}

/// Where the next program goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// To the next page of a unit whose next page has this type.
    Take(usize),
    /// The same, but to its next page of the first type: pages before are skipped. At the end of the unit it is closed, and the
    /// policy is asked again.
    Skip(usize),
    /// To the first page of a free unit.
    Open,
}

/// Chooses pages.
///
/// Contract: a pure decision. `Take` and `Skip` name a type of which a unit is open, `Skip` one that may be skipped, and not the
/// first; `Open` only if that may be. It answers something if a unit is open or may be opened.
pub trait PageChoice {
    /// Whether pages are programmed in order.
    fn is_off(&self) -> bool {
        false
    }
    /// Reclaim units of a group that may be open at once.
    fn open(&self) -> u32;
    /// Bytes of reclaim units with skipped pages, at most.
    fn region(&self) -> u64;
    /// Where the next program goes.
    fn choose(&self, pace: Pace, units: &OpenUnits) -> Option<Choice>;
}

/// What was programmed and skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounters {
    /// Program units given out by purpose (even, foreground, background, garbage collection) and type of page.
    pub programs: [[u64; TYPES]; 4],
    /// Program units skipped.
    pub skipped: u64,
}
engine::snapshot!(PageCounters { programs, skipped });

impl PageCounters {
    /// What was counted since `origin`.
    pub fn since(&self, origin: &PageCounters) -> PageCounters {
        let mut since = *self;
        for (purpose, before) in since.programs.iter_mut().zip(&origin.programs) {
            purpose.iter_mut().zip(before).for_each(|(n, before)| *n -= before);
        }
        since.skipped -= origin.skipped;
        since
    }
}

#[cfg(test)]
mod tests;
