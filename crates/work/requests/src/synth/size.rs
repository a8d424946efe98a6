//! Request sizes: fixed, a range, or a weighted split.

use super::job::{Share, Sizes};
use super::rng::Stream;

impl Sizes {
    /// A size that fits into `room` bytes, or none if even the smallest does not.
    #[inline]
    pub(crate) fn draw(&self, room: u64, stream: &mut Stream) -> Option<u64> {
        match self {
            Sizes::Fixed(bytes) => (*bytes <= room).then_some(*bytes),
            Sizes::Range { min, max } => draw_range(*min, *max, room, stream),
            Sizes::Split(shares) => draw_split(shares, room, stream),
        }
    }
}

/// fio's formula: `min + max * u`, down to a multiple of `min`, at most `max`. Where that does not fit fio draws
/// again until it does; drawing among the multiples that fit is the same distribution without the wait.
fn draw_range(min: u64, max: u64, room: u64, stream: &mut Stream) -> Option<u64> {
    if min > room {
        return None;
    }
    let drawn = min + stream.below(max);
    let bytes = (drawn - drawn % min).min(max);
    if bytes <= room { Some(bytes) } else { Some(min * (1 + stream.below(room / min))) }
}

fn draw_split(shares: &[Share], room: u64, stream: &mut Stream) -> Option<u64> {
    let fits = |share: &&Share| share.bytes <= room;
    let total: u64 = shares.iter().filter(fits).map(|s| s.weight as u64).sum();
    if total == 0 {
        return None;
    }
    let mut ticket = stream.below(total);
    for share in shares.iter().filter(fits) {
        if ticket < share.weight as u64 {
            return Some(share.bytes);
        }
        ticket -= share.weight as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::rng::Purpose;
    use super::*;

    #[test]
    fn a_range_gives_each_multiple_evenly() {
        let mut stream = Stream::new(1, Purpose::Size);
        let sizes = Sizes::Range { min: 4096, max: 16_384 };
        let mut counts = [0u32; 5];
        for _ in 0..40_000 {
            let bytes = sizes.draw(u64::MAX, &mut stream).unwrap();
            assert_eq!(bytes % 4096, 0);
            counts[(bytes / 4096) as usize] += 1;
        }
        // Three degrees of freedom: the 99.99 % point is 21.1.
        let chi: f64 = counts[1..].iter().map(|&n| (n as f64 - 1e4).powi(2) / 1e4).sum();
        assert!(counts[0] == 0 && chi < 21.1, "{counts:?}");
    }

    #[test]
    fn little_room_leaves_only_what_fits() {
        let mut stream = Stream::new(1, Purpose::Size);
        let range = Sizes::Range { min: 4096, max: 65_536 };
        let split = Sizes::Split(vec![Share { bytes: 8192, weight: 99 }, Share { bytes: 4096, weight: 1 }]);
        for sizes in [range, split] {
            for _ in 0..100 {
                assert_eq!(sizes.draw(5000, &mut stream), Some(4096));
                assert_eq!(sizes.draw(4095, &mut stream), None);
            }
        }
    }
}
