//! Which registers are free.

/// Free registers of the planes of several sets, a bit for each plane that has one.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Free registers of each plane of each set.
    free: Vec<u32>,
    planes: Vec<u64>,
    /// Planes and words of a set.
    each: u32,
    words: u32,
}

impl Pool {
    /// `sets` of `each` planes, with so many registers a plane.
    pub fn new(sets: u32, each: u32, registers: u32) -> Pool {
        let words = each.div_ceil(64);
        let mut pool = Pool {
            free: vec![0; (sets * each) as usize],
            planes: vec![0; (sets * words) as usize],
            each,
            words,
        };
        for plane in 0..sets * each {
            (0..registers).for_each(|_| pool.put(plane / each, plane % each));
        }
        pool
    }

    /// Takes a register of a plane of a set, or, if it has none, of the next plane that has one. The plane.
    #[inline]
    pub fn take(&mut self, set: u32, plane: u32) -> Option<u32> {
        let words = &self.planes[(set * self.words) as usize..][..self.words as usize];
        let found = next_bit(words, plane)?;
        let free = &mut self.free[(set * self.each + found) as usize];
        *free -= 1;
        if *free == 0 {
            self.planes[(set * self.words + found / 64) as usize] &= !(1 << (found % 64));
        }
        Some(found)
    }

    /// A register of a plane is free again.
    #[inline]
    pub fn put(&mut self, set: u32, plane: u32) {
        self.free[(set * self.each + plane) as usize] += 1;
        self.planes[(set * self.words + plane / 64) as usize] |= 1 << (plane % 64);
    }

    /// Free registers of a set.
    pub fn free(&self, set: u32) -> u32 {
        self.free[(set * self.each) as usize..][..self.each as usize].iter().sum()
    }
}

/// The first bit that is set, from `from` on and around the end.
fn next_bit(words: &[u64], from: u32) -> Option<u32> {
    let (word, bit) = ((from / 64) as usize, from % 64);
    let first = words[word] & (u64::MAX << bit);
    if first != 0 {
        return Some(word as u32 * 64 + first.trailing_zeros());
    }
    let others = (word + 1..words.len()).chain(0..=word);
    others.map(|n| (n, words[n])).find(|(_, w)| *w != 0).map(|(n, w)| n as u32 * 64 + w.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plane_itself_comes_first_then_the_next_one_around_the_end() {
        let mut pool = Pool::new(2, 3, 2);
        let taken: Vec<_> = (0..7).map(|_| pool.take(1, 2)).collect();
        assert_eq!(taken, [Some(2), Some(2), Some(0), Some(0), Some(1), Some(1), None]);
        assert_eq!((pool.free(0), pool.free(1)), (6, 0));
        pool.put(1, 0);
        assert_eq!(pool.take(1, 1), Some(0));
    }

    #[test]
    fn bits_are_found_around_the_end() {
        let words = [1 << 3, 0, 1 << 9];
        let expected = [(0, 3), (3, 3), (4, 137), (137, 137), (138, 3), (191, 3)];
        assert!(expected.iter().all(|(from, bit)| next_bit(&words, *from) == Some(*bit)));
        assert_eq!(next_bit(&[0, 0], 70), None);
        assert_eq!(next_bit(&[1 << 5], 9), Some(5));
    }
}
