//! Caches: a set-associative tag array, and replacement.

pub mod replace;

use engine::Snapshot;
use replace::{Places, Replacement, ReplacementPolicy};
use std::ops::Range;

/// Line number of an empty way.
const EMPTY: u64 = u64::MAX;

/// Shape of a cache: sets and ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Number of sets; a line's set is its number modulo this.
    pub sets: u32,
    /// Ways per set.
    pub ways: u32,
}

/// Tag array: the lines that a cache holds, each with a record `M`. Lines are numbers; the array has no time.
pub struct Tags<M> {
    shape: Shape,
    lines: Vec<u64>,
    meta: Vec<M>,
    policy: Box<dyn Replacement>,
}

impl<M: Copy + Default> Tags<M> {
    /// Creates an empty array. All such arrays draw the same random numbers, if their policy draws any.
    pub fn new(shape: Shape, policy: &ReplacementPolicy) -> Tags<M> {
        Tags::seeded(shape, policy, 0)
    }

    /// Creates an empty array whose policy draws from the random stream of `seed`.
    pub fn seeded(shape: Shape, policy: &ReplacementPolicy, seed: u64) -> Tags<M> {
        let places = (shape.sets * shape.ways) as usize;
        Tags {
            shape,
            lines: vec![EMPTY; places],
            meta: vec![M::default(); places],
            policy: policy.build(&Places { sets: shape.sets, ways: shape.ways, seed }),
        }
    }

    #[inline]
    fn set_of(&self, line: u64) -> u32 {
        if self.shape.sets.is_power_of_two() {
            line as u32 & (self.shape.sets - 1)
        } else {
            (line % u64::from(self.shape.sets)) as u32
        }
    }

    /// Place of a line; does not count as a use.
    #[inline]
    pub fn find(&self, line: u64) -> Option<u32> {
        let first = self.set_of(line) * self.shape.ways;
        let set = &self.lines[first as usize..(first + self.shape.ways) as usize];
        set.iter().position(|l| *l == line).map(|way| first + way as u32)
    }

    /// Prefetches the tags of a line that will be looked up soon.
    #[inline]
    pub fn prefetch(&self, line: u64) {
        let first = self.set_of(line) * self.shape.ways;
        engine::prefetch(&self.lines[first as usize]);
        engine::prefetch(&self.lines[(first + self.shape.ways - 1) as usize]);
        engine::prefetch(&self.meta[first as usize]);
    }

    /// Marks the line of a place as used.
    #[inline]
    pub fn touch(&mut self, place: u32) {
        self.policy.touch(place / self.shape.ways, place % self.shape.ways);
    }

    /// Inserts an absent line into an empty way or, without one, into the way chosen by the policy among those whose
    /// record satisfies `may`. Returns the place, and the evicted line; `None` if nothing may be evicted.
    pub fn insert(
        &mut self,
        line: u64,
        meta: M,
        may: impl Fn(&M) -> bool,
    ) -> Option<(u32, Option<(u64, M)>)> {
        let set = self.set_of(line);
        let first = (set * self.shape.ways) as usize;
        let lines = &self.lines[first..first + self.shape.ways as usize];
        let (way, gone) = match lines.iter().position(|l| *l == EMPTY) {
            Some(way) => (way as u32, None),
            None => {
                let records = &self.meta;
                let way = self.policy.victim(set, &|way| may(&records[first + way as usize]))?;
                let place = first + way as usize;
                (way, Some((self.lines[place], self.meta[place])))
            }
        };
        let place = first + way as usize;
        self.lines[place] = line;
        self.meta[place] = meta;
        self.policy.enter(set, way);
        Some((place as u32, gone))
    }

    /// Empties a place.
    pub fn remove(&mut self, place: u32) {
        self.lines[place as usize] = EMPTY;
        self.policy.leave(place / self.shape.ways, place % self.shape.ways);
    }

    /// Places in which a line may be.
    pub fn set(&self, line: u64) -> Range<u32> {
        let first = self.set_of(line) * self.shape.ways;
        first..first + self.shape.ways
    }

    /// Line in a place, if any.
    #[inline]
    pub fn line(&self, place: u32) -> Option<u64> {
        Some(self.lines[place as usize]).filter(|l| *l != EMPTY)
    }

    /// Record of a place.
    #[inline]
    pub fn meta(&self, place: u32) -> &M {
        &self.meta[place as usize]
    }

    /// Mutable record of a place.
    #[inline]
    pub fn meta_mut(&mut self, place: u32) -> &mut M {
        &mut self.meta[place as usize]
    }

    /// Number of places: sets times ways.
    pub fn places(&self) -> u32 {
        self.shape.sets * self.shape.ways
    }
}

impl<M: Copy + Default + Snapshot> Tags<M> {
    /// Appends the lines, their records and the policy's state.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.lines.save(out);
        self.meta.save(out);
        self.policy.save(out);
    }

    /// Loads the saved state of an array of the same shape and policy from the front of `input`; `None` if it is
    /// malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let (lines, meta) = <(Vec<u64>, Vec<M>)>::load(input)?;
        let is_in_its_set = |(place, line): (u32, &u64)| self.set(*line).contains(&place);
        let lie_well = (0..).zip(&lines).filter(|(_, line)| **line != EMPTY).all(is_in_its_set);
        if lines.len() != self.lines.len() || meta.len() != self.meta.len() || !lie_well {
            return None;
        }
        // The same line twice in its set.
        let is_twice =
            |set: &[u64]| (1..set.len()).any(|way| set[way] != EMPTY && set[..way].contains(&set[way]));
        if lines.chunks(self.shape.ways as usize).any(is_twice) {
            return None;
        }
        (self.lines, self.meta) = (lines, meta);
        self.policy.load(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts a line; returns the evicted one.
    fn use_line(tags: &mut Tags<u8>, line: u64) -> Option<(u64, u8)> {
        match tags.find(line) {
            Some(place) => {
                tags.touch(place);
                None
            }
            None => tags.insert(line, line as u8, |_| true).expect("room").1,
        }
    }

    /// Holds for every policy, including new ones.
    #[test]
    fn an_array_goes_on_from_what_was_saved() {
        for policy in ReplacementPolicy::all_defaults() {
            let fresh = || Tags::<u8>::seeded(Shape { sets: 8, ways: 4 }, &policy, 3);
            let (mut first, mut second) = (fresh(), fresh());
            let mut rng = engine::Rng::stream(1, "lines");
            for _ in 0..500 {
                use_line(&mut first, rng.below(64));
            }
            let mut saved = Vec::new();
            first.save(&mut saved);
            let mut input = saved.as_slice();
            assert!(second.load(&mut input).is_some() && input.is_empty(), "{}", policy.name());
            for step in 0..500 {
                let line = rng.below(64);
                let gone = [&mut first, &mut second].map(|tags| use_line(tags, line));
                assert_eq!(gone[0], gone[1], "{}: {step}", policy.name());
            }
            for cut in (0..saved.len()).step_by(7) {
                assert!(fresh().load(&mut &saved[..cut]).is_none(), "{}: {cut}", policy.name());
            }
            let mut other = Tags::<u8>::seeded(Shape { sets: 4, ways: 8 }, &policy, 3);
            assert!(other.load(&mut saved.as_slice()).is_none(), "lines in sets of another shape");
        }
    }

    #[test]
    fn the_least_recently_used_line_of_a_set_goes() {
        let mut tags: Tags<u8> = Tags::new(Shape { sets: 2, ways: 2 }, &ReplacementPolicy::lru);
        for line in [0, 2, 1] {
            assert_eq!(tags.insert(line, 0, |_| true).expect("room").1, None);
        }
        tags.touch(tags.find(0).expect("here"));
        assert_eq!(tags.insert(4, 7, |_| true).expect("room").1, Some((2, 0)));
        assert_eq!((tags.find(2), tags.find(0).is_some(), tags.find(1).is_some()), (None, true, true));
        assert_eq!(tags.insert(6, 0, |meta| *meta != 0).expect("room").1, Some((4, 7)));
        assert_eq!(tags.insert(8, 0, |meta| *meta != 0), None);
    }
}
