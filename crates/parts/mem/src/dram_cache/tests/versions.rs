//! A naive model of where data are, which carries a version for every page.

use super::*;
use std::collections::BTreeMap;

/// Replays what has happened to data: nobody reads an old version, and none is lost. A page is in the cache, in the evict
/// buffer, or on its way; only what flash has not taken yet may have come back from the buffer meanwhile.
pub(super) fn replay(bench: &Bench) {
    let (mut cache, mut buffer, mut coming) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (mut flash, mut newest) = (BTreeMap::<u64, u32>::new(), BTreeMap::<u64, u32>::new());
    let of = |versions: &BTreeMap<u64, u32>, page: u64| versions.get(&page).copied().unwrap_or(0);
    for (number, step) in (1..).zip(&bench.cache.moves) {
        match *step {
            Move::Warm(page, write, gone) => {
                // Without time: what goes is in flash at once.
                if let Some(gone) = gone {
                    flash.insert(gone, cache.remove(&gone).expect("what goes is here"));
                }
                let version = cache.entry(page).or_insert_with(|| of(&flash, page));
                if write {
                    *version = number;
                    newest.insert(page, number);
                }
            }
            Move::Serve(command) => {
                let version = cache.get_mut(&command.page).expect("it is here");
                assert_eq!(*version, of(&newest, command.page), "an old version: {command:?}");
                if command.write {
                    *version = number;
                    newest.insert(command.page, number);
                }
            }
            Move::Evict(page) => {
                let version = cache.remove(&page).expect("what leaves is here");
                assert_eq!(buffer.insert(page, version), None, "two versions leave");
            }
            Move::Ask(page) => {
                assert!(!cache.contains_key(&page) && !buffer.contains_key(&page));
                assert_eq!(coming.insert(page, of(&flash, page)), None);
            }
            Move::Reclaim(page) => {
                assert!(!cache.contains_key(&page));
                assert_eq!(coming.insert(page, buffer[&page]), None);
            }
            Move::Gone(page, written) => {
                let version = buffer.remove(&page).expect("it was there");
                if written {
                    flash.insert(page, version);
                } else {
                    assert_eq!(version, of(&flash, page), "a change is lost");
                }
            }
            Move::Pass(command) => {
                assert!(!command.write && !cache.contains_key(&command.page));
                assert_eq!(coming[&command.page], of(&newest, command.page), "an old version: {command:?}");
            }
            Move::Bypass(page) => {
                assert!(coming.remove(&page).is_some() && !cache.contains_key(&page));
            }
            Move::Install(page) => {
                let version = coming.remove(&page).expect("it was on its way");
                assert_eq!(cache.insert(page, version), None, "it is here twice");
            }
        }
    }
    assert!(buffer.is_empty() && coming.is_empty());
    for (page, version) in newest {
        assert_eq!(cache.get(&page).copied().unwrap_or_else(|| of(&flash, page)), version);
    }
    for page in cache.keys() {
        assert!(bench.cache.is_cached(*page));
    }
}
