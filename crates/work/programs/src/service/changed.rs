//! What jobs have changed of a program's data, as bytes.

use engine::Snapshot;
use rustc_hash::FxHashMap;

/// Appends entries in the order of their keys: equal maps are equal bytes, whatever their history.
pub(crate) fn save<V: Snapshot>(changed: &FxHashMap<u64, V>, out: &mut Vec<u8>) {
    let mut entries: Vec<(&u64, &V)> = changed.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| **key);
    entries.len().save(out);
    for (key, value) in entries {
        key.save(out);
        value.save(out);
    }
}

/// Counters that a program adds to stay below this when they are loaded: no run comes from here to the end of 64 bits.
pub(crate) const COUNT_MAX: u64 = 1 << 48;

/// Takes a map off the front; `None` if it is cut short, its keys do not rise, or an entry is not one that a program makes.
pub(crate) fn load<V: Snapshot>(
    input: &mut &[u8],
    may: impl Fn(u64, &V) -> bool,
) -> Option<FxHashMap<u64, V>> {
    let count = usize::load(input)?;
    let (mut changed, mut least) = (FxHashMap::default(), 0);
    for _ in 0..count {
        let (key, value) = <(u64, V)>::load(input)?;
        if key < least || !may(key, &value) {
            return None;
        }
        least = key.checked_add(1)?;
        changed.insert(key, value);
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_loaded_whatever_its_history() {
        let forth: FxHashMap<u64, u32> = (0..100).map(|key| (key * 7, key as u32)).collect();
        let back: FxHashMap<u64, u32> = (0..100).rev().map(|key| (key * 7, key as u32)).collect();
        let [one, other] = [forth, back].map(|map| {
            let mut bytes = Vec::new();
            save(&map, &mut bytes);
            let mut input = bytes.as_slice();
            assert!(load(&mut input, |_, _| true) == Some(map) && input.is_empty());
            bytes
        });
        assert_eq!(one, other);
        for cut in 0..one.len() {
            assert_eq!(load::<u32>(&mut &one[..cut], |_, _| true), None);
        }
        // Two entries with one key.
        let mut twice = Vec::new();
        (2_usize, (5_u64, 1_u32)).save(&mut twice);
        (5_u64, 1_u32).save(&mut twice);
        assert_eq!(load::<u32>(&mut twice.as_slice(), |_, _| true), None);
        // An entry that no job makes.
        assert_eq!(load::<u32>(&mut one.as_slice(), |key, _| key != 7), None);
    }
}
