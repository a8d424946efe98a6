//! Remapping of a trace's addresses to a device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::IoOp;

use crate::trace::human;
use crate::trace::options::Remap;
use crate::trace::record::Extent;

/// Unit of [`Remap::Compact`] in bytes.
pub(crate) const REGION: u64 = 1 << 20;

/// Reason why a request has no address on the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Beyond {
    /// The request ends beyond the device.
    End,
    /// The request is larger than the device.
    Larger,
    /// All of the device is taken by regions touched earlier.
    Full,
}

impl Beyond {
    pub(crate) fn text(&self, capacity: u64) -> String {
        let device = human::bytes(capacity);
        match self {
            Beyond::End => format!("the request ends beyond the device of {device}"),
            Beyond::Larger => format!("the request is larger than the device of {device}"),
            Beyond::Full => {
                format!("the trace touches more regions of 1 MiB than the device of {device} has")
            }
        }
    }
}

/// Places requests on the device, piece by piece.
pub(crate) struct Remapper {
    policy: Remap,
    capacity: Option<u64>,
    places: Places,
}

/// Map of (volume, region of it) to the region of the device, in the order of first touch. Sorted, so that a trim of
/// a whole disk finds the touched regions without asking for every region.
type Regions = BTreeMap<(u32, u64), u64>;

/// Places of regions on a device, shared by all the traces that are read for it.
#[derive(Clone, Default)]
pub(crate) struct Places(Arc<Mutex<Regions>>);

impl Places {
    /// Locks the regions; a reader that has panicked leaves them intact.
    fn regions(&self) -> MutexGuard<'_, Regions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Part of a request that is contiguous on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Bytes of the request before it that touch nothing.
    pub(crate) skipped: u64,
    /// Place on the device; zero bytes if nothing of the request is left.
    pub(crate) there: Extent,
}

impl Remapper {
    /// Creates a remapper that shares its places with those of other traces.
    pub(crate) fn new(policy: Remap, capacity: Option<u64>, places: Places) -> Remapper {
        Remapper { policy, capacity, places }
    }

    /// Returns the first piece of `extent` on the device. Only `compact` makes pieces shorter than the extent.
    pub(crate) fn piece(&mut self, op: IoOp, volume: u32, extent: Extent) -> Result<Piece, Beyond> {
        let whole = |there| Ok(Piece { skipped: 0, there });
        let Some(capacity) = self.capacity else {
            return whole(extent);
        };
        match self.policy {
            Remap::Error if fits(extent, capacity) => whole(extent),
            Remap::Error => Err(Beyond::End),
            Remap::Wrap => whole(wrap(extent, capacity)?),
            _ if op == IoOp::Trim => Ok(compact_trim(&self.places.regions(), volume, extent)),
            Remap::Compact | Remap::Fit => {
                whole(compact(&mut self.places.regions(), volume, extent, capacity)?)
            }
        }
    }
}

fn compact(regions: &mut Regions, volume: u32, extent: Extent, capacity: u64) -> Result<Extent, Beyond> {
    let first = touch(regions, volume, extent.offset / REGION, capacity)?;
    // If the rest does not fit, its own turn reports it.
    Ok(run(extent, first, |region| touch(regions, volume, region, capacity).ok()))
}

fn touch(regions: &mut Regions, volume: u32, region: u64, capacity: u64) -> Result<u64, Beyond> {
    if let Some(&there) = regions.get(&(volume, region)) {
        return Ok(there);
    }
    let there = regions.len() as u64;
    if there >= capacity / REGION {
        return Err(Beyond::Full);
    }
    regions.insert((volume, region), there);
    Ok(there)
}

/// Places a trim, which reaches only touched regions; the others hold nothing to deallocate.
fn compact_trim(regions: &Regions, volume: u32, extent: Extent) -> Piece {
    let end = extent.offset + extent.bytes;
    let range = (volume, extent.offset / REGION)..=(volume, (end - 1) / REGION);
    let Some((&(_, region), &first)) = regions.range(range).next() else {
        return Piece { skipped: extent.bytes, there: Extent::NONE };
    };
    let offset = extent.offset.max(region * REGION);
    let rest = Extent { offset, bytes: end - offset };
    let there = run(rest, first, |region| regions.get(&(volume, region)).copied());
    Piece { skipped: offset - extent.offset, there }
}

/// Returns the place of `extent` from its start up to the first gap between its regions; the first region is at
/// `first`.
fn run(extent: Extent, first: u64, mut place_of: impl FnMut(u64) -> Option<u64>) -> Extent {
    let inside = extent.offset % REGION;
    let mut bytes = (REGION - inside).min(extent.bytes);
    let mut next = 1;
    while bytes < extent.bytes && place_of(extent.offset / REGION + next) == Some(first + next) {
        bytes = (bytes + REGION).min(extent.bytes);
        next += 1;
    }
    Extent { offset: first * REGION + inside, bytes }
}

/// Returns true if an extent fits the device unchanged.
pub(crate) fn fits(extent: Extent, capacity: u64) -> bool {
    extent.offset.checked_add(extent.bytes).is_some_and(|end| end <= capacity)
}

fn wrap(extent: Extent, capacity: u64) -> Result<Extent, Beyond> {
    if extent.bytes > capacity {
        return Err(Beyond::Larger);
    }
    let offset = (extent.offset % capacity).min(capacity - extent.bytes);
    Ok(Extent { offset, bytes: extent.bytes })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(offset: u64, bytes: u64) -> Extent {
        Extent { offset, bytes }
    }

    fn moved(remap: &mut Remapper, volume: u32, extent: Extent) -> Result<Extent, Beyond> {
        remap.piece(IoOp::Write, volume, extent).map(|piece| {
            assert_eq!(piece.skipped, 0);
            piece.there
        })
    }

    #[test]
    fn wrap_is_modulo_and_never_straddles_the_end() {
        let mut remap = Remapper::new(Remap::Wrap, Some(10 << 20), Places::default());
        assert_eq!(moved(&mut remap, 0, at(4096, 4096)), Ok(at(4096, 4096)));
        assert_eq!(moved(&mut remap, 0, at((10 << 20) + 4096, 4096)), Ok(at(4096, 4096)));
        assert_eq!(moved(&mut remap, 0, at((20 << 20) - 512, 4096)), Ok(at((10 << 20) - 4096, 4096)));
        assert_eq!(moved(&mut remap, 0, at(0, 11 << 20)), Err(Beyond::Larger));
    }

    #[test]
    fn compact_packs_regions_in_order_of_touch_and_splits_where_they_part() {
        let mut remap = Remapper::new(Remap::Compact, Some(4 * REGION), Places::default());
        assert_eq!(moved(&mut remap, 0, at(70 * REGION + 512, 512)), Ok(at(512, 512)));
        assert_eq!(moved(&mut remap, 1, at(70 * REGION + 512, 512)), Ok(at(REGION + 512, 512)));
        // Region 69 is new and goes after the others, away from region 70.
        assert_eq!(moved(&mut remap, 0, at(69 * REGION, 2 * REGION)), Ok(at(2 * REGION, REGION)));
        assert_eq!(moved(&mut remap, 0, at(70 * REGION, REGION)), Ok(at(0, REGION)));
        assert_eq!(moved(&mut remap, 2, at(0, 512)), Ok(at(3 * REGION, 512)));
        assert_eq!(moved(&mut remap, 2, at(REGION, 512)), Err(Beyond::Full));
    }

    #[test]
    fn neighbours_touched_together_stay_one_run() {
        let mut remap = Remapper::new(Remap::Compact, Some(8 * REGION), Places::default());
        assert_eq!(moved(&mut remap, 0, at(5 * REGION + 4096, 3 * REGION)), Ok(at(4096, 3 * REGION)));
    }

    #[test]
    fn a_trim_of_a_whole_disk_reaches_only_what_was_touched() {
        let mut remap = Remapper::new(Remap::Compact, Some(8 * REGION), Places::default());
        let disk = at(512, 1 << 62);
        assert_eq!(remap.piece(IoOp::Trim, 0, disk), Ok(Piece { skipped: 1 << 62, there: Extent::NONE }));
        moved(&mut remap, 0, at(900 * REGION, 512)).unwrap();
        moved(&mut remap, 0, at(7 * REGION, 2 * REGION)).unwrap();
        let first = remap.piece(IoOp::Trim, 0, disk).unwrap();
        assert_eq!(first, Piece { skipped: 7 * REGION - 512, there: at(REGION, 2 * REGION) });
        let rest = at(9 * REGION, 1 << 61);
        let second = remap.piece(IoOp::Trim, 0, rest).unwrap();
        assert_eq!(second, Piece { skipped: 891 * REGION, there: at(0, REGION) });
    }

    proptest! {
        /// Checks that compact is a bijection on bytes: two bytes of the trace never share a place, and a byte never
        /// moves.
        #[test]
        fn compact_is_one_to_one(requests in prop::collection::vec((0_u32..3, 0_u64..40, 1_u64..3 * 2048), 1..60)) {
            let mut remap = Remapper::new(Remap::Compact, Some(1 << 40), Places::default());
            let mut there = BTreeMap::new();
            let mut back = BTreeMap::new();
            for (flow, start, sectors) in requests {
                let mut rest = at(start * 300 * 512, sectors * 512);
                while rest.bytes > 0 {
                    let piece = moved(&mut remap, flow, rest).unwrap();
                    prop_assert!(piece.bytes > 0);
                    for sector in 0..piece.bytes / 512 {
                        let old = (flow, rest.offset / 512 + sector);
                        let new = piece.offset / 512 + sector;
                        prop_assert_eq!(*there.entry(old).or_insert(new), new);
                        prop_assert_eq!(*back.entry(new).or_insert(old), old);
                    }
                    rest = at(rest.offset + piece.bytes, rest.bytes - piece.bytes);
                }
            }
        }
    }
}
