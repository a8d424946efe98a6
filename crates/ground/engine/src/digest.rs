//! A digest of a run: two runs with the same digest did the same things in the same order.

/// A 64-bit running digest. Not cryptographic: it finds change, not malice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Digest(u64);

impl Digest {
    /// Takes a word in; order matters.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.0 = crate::mix(self.0.rotate_left(5) ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    /// The digest so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn order_matters() {
        let digest = |words: &[u64]| {
            let mut d = Digest::default();
            words.iter().for_each(|w| d.word(*w));
            d.value()
        };
        assert_ne!(digest(&[1, 2]), digest(&[2, 1]));
        assert_ne!(digest(&[0]), digest(&[0, 0]));
    }
}
