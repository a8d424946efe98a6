//! Translation of device addresses to a program's space from zero up.
//!
//! The pages that a trace touches, and the buffers that it copies to the device, are anywhere in 64 bits. They are
//! placed one after another, in order of address. A thread's local memory, which a trace gives as offsets on its
//! stack, follows after them, with the words of a warp's lanes adjacent as in hardware.

use proto::memory::PAGE;
use proto::simt::LANES;
use rustc_hash::FxHashSet;
use text::Bad;

use crate::program::Space;

/// Number of warps with separate local memory; later warps reuse the places. 16 multiprocessors of 80 warps (ZnG,
/// Table I) hold as many at a time.
const LOCAL_WARPS: u64 = 16 * 80;

/// Size of the windows of shared and local memory in generic addresses: 16 MiB.
pub(super) const WINDOW: u64 = 16 << 20;

/// Memory that a trace touches, collected while it is read.
#[derive(Default)]
pub(super) struct Touched {
    pages: FxHashSet<u64>,
    last: Option<u64>,
    buffers: Vec<(u64, u64)>,
    local: Option<(u64, u64)>,
}

impl Touched {
    /// Records that a lane accesses `width` bytes of global memory.
    #[inline]
    pub(super) fn global(&mut self, address: u64, width: u8) -> Result<(), Bad> {
        let Some(last) = address.checked_add(u64::from(width.max(1)) - 1) else {
            return Err(Bad::new(format!("an access beyond the 64-bit address space: 0x{address:x}")));
        };
        for page in address / PAGE..=last / PAGE {
            if self.last != Some(page) {
                self.pages.insert(page);
                self.last = Some(page);
            }
        }
        Ok(())
    }

    /// Records that a lane accesses `width` bytes of its local memory.
    #[inline]
    pub(super) fn local(&mut self, offset: u64, width: u8) {
        let end = offset + u64::from(width);
        let (low, high) = self.local.unwrap_or((offset, end));
        self.local = Some((low.min(offset), high.max(end)));
    }

    /// Records bytes copied to the device.
    pub(super) fn buffer(&mut self, address: u64, bytes: u64) -> Result<(), Bad> {
        if bytes == 0 {
            return Ok(());
        }
        let Some(last) = address.checked_add(bytes - 1) else {
            return Err(Bad::new(format!("a buffer of {bytes} bytes at 0x{address:x} ends beyond 64 bits")));
        };
        self.buffers.push((address / PAGE, last / PAGE + 1));
        Ok(())
    }

    /// Lays out all of it.
    pub(super) fn lay_out(self) -> Result<Layout, Bad> {
        let mut ranges: Vec<(u64, u64)> = self.pages.into_iter().map(|page| (page, page + 1)).collect();
        ranges.extend(self.buffers);
        ranges.sort_unstable();
        let mut regions: Vec<Region> = Vec::new();
        let mut pages = 0_u64;
        for (first, end) in ranges {
            match regions.last_mut() {
                Some(region) if first <= region.end => {
                    pages += end.saturating_sub(region.end);
                    region.end = region.end.max(end);
                }
                _ => {
                    regions.push(Region { first, end, at: pages });
                    pages += end - first;
                }
            }
        }
        if pages > u64::MAX / PAGE / 2 {
            return Err(Bad::new("the buffers of the trace fill more than half of the 64-bit address space"));
        }
        let local = self.local.map(|(low, high)| {
            let low = low & !(LOCAL_ALIGNMENT - 1);
            (low, (high - low).next_multiple_of(LOCAL_ALIGNMENT))
        });
        let mut space = Space::default();
        for region in &regions {
            space.array("memory", 1, ((region.end - region.first) * PAGE) as usize);
        }
        if let Some((_, bytes)) = local {
            space.array("local memory", 1, (bytes * LANES as u64 * LOCAL_WARPS) as usize);
        }
        Ok(Layout { regions, local, local_base: pages * PAGE, space })
    }
}

/// Alignment of the bounds of local offsets: the widest access.
const LOCAL_ALIGNMENT: u64 = 16;

/// Consecutive pages.
#[derive(Clone, Copy, Debug)]
struct Region {
    first: u64,
    end: u64,
    /// New place, in pages.
    at: u64,
}

/// Layout of all memory.
#[derive(Clone)]
pub(super) struct Layout {
    regions: Vec<Region>,
    /// Lowest offset and bytes of a thread's local memory.
    local: Option<(u64, u64)>,
    local_base: u64,
    pub(super) space: Space,
}

impl Layout {
    /// Translates device addresses, in place.
    #[inline]
    pub(super) fn global(&self, addresses: &mut [u64]) {
        let mut region = Region { first: 1, end: 0, at: 0 };
        for address in addresses {
            let page = *address / PAGE;
            if page < region.first || page >= region.end {
                let n = self.regions.partition_point(|region| region.first <= page);
                region = self.regions[n - 1];
            }
            *address = (page - region.first + region.at) * PAGE + *address % PAGE;
        }
    }

    /// Turns local offsets of a warp's lanes into addresses, in place; `warp` counts the kernel's warps.
    ///
    /// Accesses of equal width and offset are adjacent, lane by lane; those of a different width share their lines.
    #[inline]
    pub(super) fn local(&self, warp: u64, width: u8, mask: u32, addresses: &mut [u64]) {
        let Some((low, bytes)) = self.local else { return };
        let (lanes, width) = (LANES as u64, u64::from(width.max(1)));
        let base = self.local_base + warp % LOCAL_WARPS * bytes * lanes;
        let mut rest = mask;
        for address in addresses {
            let lane = u64::from(rest.trailing_zeros());
            rest &= rest.wrapping_sub(1);
            let offset = *address - low;
            *address = base + offset / width * width * lanes + lane * width + offset % width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOCAL_WARPS, Touched};
    use proto::memory::PAGE;

    #[test]
    fn pages_are_laid_one_behind_the_other_in_order_of_address() {
        let mut touched = Touched::default();
        touched.global(0x7f00_0000_1ffe, 4).unwrap();
        touched.global(0x10_0000, 4).unwrap();
        touched.buffer(0x10_1000, 2 * PAGE + 1).unwrap();
        let layout = touched.lay_out().unwrap();
        // Pages 0x100 and 0x101..=0x103 are one region; the access at ..1ffe touches two pages.
        assert_eq!(layout.space.footprint(), 6 * PAGE);
        let mut addresses = [0x10_0010, 0x7f00_0000_2004, 0x7f00_0000_1000, 0x10_3fff];
        layout.global(&mut addresses);
        assert_eq!(addresses, [0x10, 5 * PAGE + 4, 4 * PAGE, 4 * PAGE - 1]);
    }

    #[test]
    fn local_words_of_a_warp_lie_side_by_side() {
        let mut touched = Touched::default();
        touched.local(0xfff0, 4);
        touched.local(0xfff8, 8);
        let layout = touched.lay_out().unwrap();
        assert_eq!(layout.space.footprint(), 16 * 32 * LOCAL_WARPS);
        let mut word = [0xfff4; 2];
        layout.local(0, 4, 0b1001, &mut word);
        assert_eq!(word, [128, 128 + 12]);
        let mut double = [0xfff8; 1];
        layout.local(LOCAL_WARPS + 1, 8, 1 << 31, &mut double);
        assert_eq!(double, [512 + 256 + 31 * 8]);
    }

    #[test]
    fn what_ends_beyond_64_bits_is_refused() {
        assert!(Touched::default().global(u64::MAX - 2, 4).is_err());
        assert!(Touched::default().global(u64::MAX - 3, 4).is_ok());
        assert!(Touched::default().buffer(u64::MAX, 2).is_err());
        let mut all = Touched::default();
        all.buffer(0, u64::MAX).unwrap();
        assert!(all.lay_out().is_err());
    }
}
