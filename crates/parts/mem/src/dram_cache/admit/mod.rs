//! Admission: which missing pages are put into a DRAM cache.

pub mod always;
pub mod second_touch;

config::policies! {
    /// Which missing pages are put into a DRAM cache; another is read, answers those who wait for it, and is not kept.
    ///
    /// A page that is to be written, or that an access was answered without data for, is put there whatever the policy says:
    /// the one has to be changed somewhere, and the other comes again for its data.
    pub family PageAdmission: dyn Admission, context u64 {
        /// All of them.
        default always => |_: &u64| always::Always,
        /// Those that have missed before, not long ago.
        ///
        /// The queue of names `A1out` of 2Q (Johnson and Shasha, VLDB 1994): pages used once do not push others out. A miss
        /// that finds its page on its way counts no further.
        second_touch(second_touch::Params) => second_touch::SecondTouch::new,
    }
}

/// Decides what is kept. The context is the number of pages that the cache holds.
///
/// Contract: nothing is allocated once as many misses have been as are remembered.
pub trait Admission {
    /// A page is missing, and is about to be read: whether it is to be kept.
    fn admits(&mut self, page: u64) -> bool;
}
