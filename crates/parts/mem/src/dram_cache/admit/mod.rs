//! Admission: the choice of missing pages that are put into a DRAM cache.

pub mod always;
pub mod second_touch;

config::policies! {
    /// Admission policy for missing pages of a DRAM cache. A page not admitted is read, answers its waiters, and is
    /// dropped.
    ///
    /// A page is always admitted if it is to be written, or if an access was answered without its data: the first must
    /// be changed somewhere, and the second is requested again.
    pub family PageAdmission: dyn Admission, context u64 {
        /// All pages.
        default always => |_: &u64| always::Always,
        /// Pages that have missed before, not long ago.
        ///
        /// Queue of names `A1out` of 2Q (Johnson and Shasha, VLDB 1994): pages used once do not evict others. A miss
        /// whose page is already in flight does not count again.
        second_touch(second_touch::Params) => second_touch::SecondTouch::new,
    }
}

/// Decides which pages are kept. The context is the number of pages that the cache holds.
///
/// Contract: nothing is allocated once the number of misses exceeds the number remembered.
pub trait Admission {
    /// Returns true if a missing page that is about to be read is to be kept.
    fn admits(&mut self, page: u64) -> bool;
}
