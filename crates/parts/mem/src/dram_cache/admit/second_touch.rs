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
    /// Window of misses within which the second one must come, as a share of the pages that the cache holds; at least
    /// one.
    pub window: Share,
}

impl Default for Params {
    /// Returns 2Q's `Kout`: the names of half as many pages as the cache holds.
    fn default() -> Params {
        Params { window: Share::percent(50) }
    }
}

/// See the family's list.
pub struct SecondTouch {
    /// Pages of the last misses: that of miss `n` is at `n` modulo their number.
    recent: Vec<u64>,
    /// Last miss of each of these pages that still waits for its second.
    last: FxHashMap<u64, u64>,
    /// Number of misses so far.
    count: u64,
}

impl SecondTouch {
    /// Creates the policy for a cache of `pages` pages.
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
        // A page whose miss leaves the window may have missed again since.
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
