//! Places of objects that a trace names by a key and not by an address.

use rustc_hash::FxHashMap;

/// Objects begin at multiples of this: *chosen*, the page of most drives.
const ALIGN: u64 = 4096;

/// Lays objects one behind another in the order in which they are first named. Memory grows with the number of objects.
#[derive(Default)]
pub(crate) struct Objects {
    /// Where each lies, and how many bytes are kept for it.
    places: FxHashMap<u64, (u64, u64)>,
    end: u64,
}

impl Objects {
    /// Where the object `key` lies, with room for `bytes`; one that has grown beyond its room lies elsewhere from then on. `None` beyond
    /// 2^64 bytes.
    pub(crate) fn place(&mut self, key: u64, bytes: u64) -> Option<u64> {
        if let Some(&(at, room)) = self.places.get(&key)
            && bytes <= room
        {
            return Some(at);
        }
        let room = bytes.max(1).checked_next_multiple_of(ALIGN)?;
        let at = self.end;
        self.end = at.checked_add(room)?;
        self.places.insert(key, (at, room));
        Some(at)
    }

    /// A key that is text, as a number: 64 bits of a hash, which two of a billion keys share by a chance of 3 in 100.
    pub(crate) fn key(text: &[u8]) -> u64 {
        // FNV-1a, then the finaliser of SplitMix64: keys that differ in the last digit lie far apart in the table.
        let fnv = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Objects;

    #[test]
    fn objects_lie_in_the_order_of_their_first_touch_and_move_when_they_outgrow_their_room() {
        let mut objects = Objects::default();
        let places = [(7, 100), (9, 5000), (7, 4096), (7, 4097), (9, 1), (7, 1)]
            .map(|(key, bytes)| objects.place(key, bytes));
        assert_eq!(places, [0, 4096, 0, 12_288, 4096, 12_288].map(Some));
        assert_eq!(objects.place(1, u64::MAX), None);
        assert_ne!(Objects::key(b"a1"), Objects::key(b"a2"));
    }
}
