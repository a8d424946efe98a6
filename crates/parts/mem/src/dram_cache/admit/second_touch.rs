//! A page is kept on its second miss.

use super::Admission;
use config::units::Share;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `second_touch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Misses within which the second has to come, as a share of the pages that the cache holds; at least one.
    pub window: Share,
}

impl Default for Params {
    /// 2Q's `Kout`: the names of half as many pages as the cache holds.
    fn default() -> Params {
        Params { window: Share::percent(50) }
    }
}

/// See the family's list.
pub struct SecondTouch {
    /// The pages of the latest misses: that of miss `n` is at `n` modulo their number.
    recent: Vec<u64>,
    /// The latest miss of each page among them that is waiting for its second.
    last: FxHashMap<u64, u64>,
    /// Misses so far.
    count: u64,
}

impl SecondTouch {
    /// For a cache of so many pages.
    pub fn new(params: &Params, pages: &u64) -> SecondTouch {
        let window = params.window.of(*pages).max(1) as usize;
        let last = FxHashMap::with_capacity_and_hasher(window + 1, rustc_hash::FxBuildHasher);
        SecondTouch { recent: vec![0; window], last, count: 0 }
    }
}

impl Admission for SecondTouch {
    fn admits(&mut self, page: u64) -> bool {
        let window = self.recent.len() as u64;
        let slot = (self.count % window) as usize;
        let is_second = self.last.remove(&page).is_some();
        // What leaves the window may have missed again since.
        let left = self.recent[slot];
        if self.count >= window && self.last.get(&left) == Some(&(self.count - window)) {
            self.last.remove(&left);
        }
        if !is_second {
            self.last.insert(page, self.count);
        }
        self.recent[slot] = page;
        self.count += 1;
        is_second
    }
}
