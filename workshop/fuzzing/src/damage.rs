//! Damage to good input.

use engine::Rng;

/// Changes to one input, at most.
const CHANGES: u64 = 6;
/// The longest input.
const LONGEST: usize = 1 << 16;
/// Pieces that readers stumble over.
const TOKENS: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"0x",
    b"1e308",
    b"nan",
    b"\n",
    b"\r\n",
    b"\0",
    b"\"",
    b",,",
    b"  ",
    b"\xff\xfe",
    b"\xc3\xa9",
    b"=",
];

/// A seeded source of damage.
pub struct Damage {
    rng: Rng,
}

impl Damage {
    /// The damage of one case of a target.
    pub fn new(seed: u64, target: &str, case: u64) -> Damage {
        Damage { rng: Rng::stream(engine::mix(seed) ^ case, target) }
    }

    /// One of the examples with up to six changes; now and then bytes that come from none.
    pub fn apply(mut self, examples: &[Vec<u8>]) -> Vec<u8> {
        if self.rng.below(32) == 0 {
            let length = self.rng.below(400) as usize;
            return (0..length).map(|_| self.byte()).collect();
        }
        let mut input = self.pick(examples).clone();
        for _ in 0..self.rng.below(CHANGES + 1) {
            self.change(&mut input, examples);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, examples: &[Vec<u8>]) {
        let at = self.rng.below(input.len() as u64 + 1) as usize;
        let until = (at + self.length()).min(input.len());
        match self.rng.below(9) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..until)),
            2 => {
                let again = input[at..until].to_vec();
                input.splice(at..at, again);
            }
            3 => {
                let token = TOKENS[self.rng.below(TOKENS.len() as u64) as usize];
                input.splice(at..at, token.iter().copied());
            }
            4 => {
                let token = TOKENS[self.rng.below(TOKENS.len() as u64) as usize];
                input.splice(at..until, token.iter().copied());
            }
            5 => {
                let other = self.pick(examples);
                let from = self.rng.below(other.len() as u64 + 1) as usize;
                let to = (from + self.length()).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            6 if at < input.len() => input[at] ^= 1 << self.rng.below(8),
            // A digit for a digit keeps the shape of most formats.
            7 if at < input.len() && input[at].is_ascii_digit() => {
                input[at] = b'0' + self.rng.below(10) as u8
            }
            _ if at < input.len() => input[at] = self.byte(),
            _ => input.push(self.byte()),
        }
    }

    fn pick<'a>(&mut self, examples: &'a [Vec<u8>]) -> &'a Vec<u8> {
        &examples[self.rng.below(examples.len() as u64) as usize]
    }

    /// A length of a piece: mostly short.
    fn length(&mut self) -> usize {
        1 + self.rng.below(1 << self.rng.clone().below(9)) as usize
    }

    fn byte(&mut self) -> u8 {
        self.rng.next_u64() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_case_is_the_same_input() {
        let examples = [b"some text, 12 34".to_vec(), b"other".to_vec()];
        let make = |seed, name, case| Damage::new(seed, name, case).apply(&examples);
        for case in 0..100 {
            assert_eq!(make(1, "a", case), make(1, "a", case));
        }
        let differ =
            |f: &dyn Fn(u64) -> Vec<u8>| (0..100).filter(|case| f(*case) != make(1, "a", *case)).count();
        assert!(differ(&|case| make(2, "a", case)) > 80);
        assert!(differ(&|case| make(1, "b", case)) > 80);
        assert!(differ(&|case| make(1, "a", case + 1)) > 80);
    }

    /// Examples come whole as well: what is read must hold for them too.
    #[test]
    fn some_cases_change_nothing() {
        let examples = [b"whole".to_vec()];
        let whole =
            (0..200).filter(|case| Damage::new(1, "a", *case).apply(&examples) == examples[0]).count();
        assert!((10..100).contains(&whole), "{whole}");
    }
}
