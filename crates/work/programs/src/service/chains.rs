//! The chains of a hash table that is loaded by a formula.
//!
//! Ids are put in the order of their hashes by a permutation and each group of [`GROUP`] neighbours is thrown into as many
//! buckets. So a bucket's members are found among 32 candidates, and the lengths of chains are binomial with mean 1 and
//! variance 31/32 (Poisson, of a hash over the whole table: 1). One bucket an id is the load factor 1 at which
//! `std::unordered_map` grows.

use requests::synth::Permutation;

/// Ids that share as many buckets. Tables are made for a multiple of it, so that they have a bucket for each id.
pub(crate) const GROUP: u64 = 32;

/// Which bucket each of the ids `0..n` is in.
pub(crate) struct Chains {
    order: Permutation,
    salt: u64,
}

impl Chains {
    /// Of `n` ids.
    pub(crate) fn new(n: u64, salt: u64) -> Chains {
        Chains { order: Permutation::new(n, salt), salt: engine::mix(salt) }
    }

    /// The bucket of an id.
    pub(crate) fn bucket(&self, id: u64) -> u64 {
        self.bucket_at(self.order.at(id))
    }

    fn bucket_at(&self, place: u64) -> u64 {
        place / GROUP * GROUP + engine::mix(place ^ self.salt) % GROUP
    }

    /// The first of a bucket's chain among those that are `loaded`.
    pub(crate) fn first(&self, bucket: u64, loaded: impl Fn(u64) -> bool) -> Option<u64> {
        self.from(bucket, bucket / GROUP * GROUP, loaded)
    }

    /// The one behind `id` in its chain, among those that are `loaded`.
    pub(crate) fn next(&self, id: u64, loaded: impl Fn(u64) -> bool) -> Option<u64> {
        let place = self.order.at(id);
        self.from(self.bucket_at(place), place + 1, loaded)
    }

    fn from(&self, bucket: u64, place: u64, loaded: impl Fn(u64) -> bool) -> Option<u64> {
        let end = ((bucket / GROUP + 1) * GROUP).min(self.order.len());
        let mut members = (place..end).filter(|&place| self.bucket_at(place) == bucket);
        members.find_map(|place| Some(self.order.place_of(place)).filter(|&id| loaded(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_in_its_bucket_once_and_chains_are_nearly_poisson() {
        let n = 100_032;
        let chains = Chains::new(n, 5);
        let (mut seen, mut lengths) = (vec![0u8; n as usize], [0f64; 6]);
        for bucket in 0..n {
            let (mut at, mut length) = (chains.first(bucket, |_| true), 0);
            while let Some(id) = at {
                assert_eq!(chains.bucket(id), bucket);
                seen[id as usize] += 1;
                length += 1;
                at = chains.next(id, |_| true);
            }
            lengths[length.min(5)] += 1.0;
        }
        assert!(seen.iter().all(|&n| n == 1));
        // Binomial(32, 1/32), within five standard deviations of a count (the groups only lower it).
        let mut p = libm::pow(31.0 / 32.0, 32.0);
        for (k, &count) in lengths[..5].iter().enumerate() {
            let expected = p * n as f64;
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{k}: {count} against {expected}");
            p *= (32 - k) as f64 / (k + 1) as f64 / 31.0;
        }
    }
}
