//! Telling the processor what will be read.

/// Has the processor fetch a value into its caches. Nothing else happens: what is not known to it is not fetched.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction belongs to SSE, which every x86_64 processor has. It neither reads nor writes memory
        // as the program sees it, and faults at no address; this one comes from a reference, so it is valid besides.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small enough for `cargo miri test -p nandscape-engine prefetch`.
    #[test]
    fn values_of_any_size_stay_as_they_are() {
        let (byte, words) = (7u8, vec![1u64, 2, 3]);
        prefetch(&byte);
        prefetch(&words[2]);
        prefetch(&words);
        prefetch(&());
        assert_eq!((byte, words), (7, vec![1, 2, 3]));
    }
}
