//! Polynomials of iteration numbers, summed exactly.

use crate::affine::{Affine, DEPTH};
use crate::domain::{Domain, Level};

/// A fraction in lowest terms; its lower part is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn new(over: i128, under: i128) -> Fraction {
        let divisor = common_divisor(over.unsigned_abs(), under.unsigned_abs()).max(1) as i128;
        Fraction { over: over / divisor, under: under / divisor }
    }

    fn plus(self, other: Fraction) -> Fraction {
        if self.under == other.under {
            return Fraction::new(self.over + other.over, self.under);
        }
        Fraction::new(self.over * other.under + other.over * self.under, self.under * other.under)
    }

    fn times(self, other: Fraction) -> Fraction {
        Fraction::new(self.over * other.over, self.under * other.under)
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Powers of the iteration numbers, by level.
type Powers = [u8; DEPTH];

/// A polynomial: a sum of products of powers.
#[derive(Clone, Debug)]
struct Polynomial(Vec<(Powers, Fraction)>);

/// `1^p + ... + (x - 1)^p` as coefficients of `x`, `x^2`, ... (Faulhaber), each over 60.
const SUMS: [[i128; DEPTH]; DEPTH] = [
    [60, 0, 0, 0, 0, 0],
    [-30, 30, 0, 0, 0, 0],
    [10, -30, 20, 0, 0, 0],
    [0, 15, -30, 15, 0, 0],
    [-2, 0, 20, -30, 12, 0],
    [0, -5, 0, 25, -30, 10],
];

impl Polynomial {
    fn number(number: i128) -> Polynomial {
        Polynomial(vec![([0; DEPTH], Fraction { over: number, under: 1 })])
    }

    fn of(sum: &Affine) -> Polynomial {
        let mut polynomial = Polynomial::number(sum.constant.into());
        for (level, by) in sum.by.iter().enumerate().filter(|(_, by)| **by != 0) {
            let mut powers = [0; DEPTH];
            powers[level] = 1;
            polynomial.add(powers, Fraction { over: (*by).into(), under: 1 });
        }
        polynomial
    }

    fn add(&mut self, powers: Powers, factor: Fraction) {
        match self.0.iter_mut().find(|(own, _)| *own == powers) {
            Some((_, own)) => *own = own.plus(factor),
            None => self.0.push((powers, factor)),
        }
    }

    fn add_product(&mut self, a: &Polynomial, powers: Powers, factor: Fraction) {
        for (own, by) in &a.0 {
            let mut both = powers;
            both.iter_mut().zip(own).for_each(|(power, own)| *power += own);
            self.add(both, factor.times(*by));
        }
    }

    fn times(&self, other: &Polynomial) -> Polynomial {
        let mut product = Polynomial(Vec::new());
        for (powers, factor) in &other.0 {
            product.add_product(self, *powers, *factor);
        }
        product
    }

    /// The sum of `t^power` over `t` from zero below `end`.
    fn sum_below(end: &Affine, power: usize) -> Polynomial {
        let end = Polynomial::of(end);
        let mut raised = Polynomial::number(1);
        let mut sum = Polynomial(Vec::new());
        for over in &SUMS[power][..=power] {
            raised = raised.times(&end);
            sum.add_product(&raised, [0; DEPTH], Fraction::new(*over, 60));
        }
        sum
    }

    /// Itself, summed over the iterations of a loop.
    fn summed(&self, level: usize, Level { from, below, .. }: &Level) -> Polynomial {
        let mut sum = Polynomial(Vec::new());
        for (powers, factor) in &self.0 {
            let power = usize::from(powers[level]);
            let mut rest = *powers;
            rest[level] = 0;
            let minus = Fraction { over: -factor.over, ..*factor };
            sum.add_product(&Polynomial::sum_below(below, power), rest, *factor);
            sum.add_product(&Polynomial::sum_below(from, power), rest, minus);
        }
        sum.0.retain(|(_, factor)| factor.over != 0);
        sum
    }

    fn as_number(&self) -> Option<i128> {
        match self.0[..] {
            [] => Some(0),
            [(powers, Fraction { over, under: 1 })] if powers == [0; DEPTH] => Some(over),
            _ => None,
        }
    }
}

/// How many iterations a domain has: exactly, without walking through them. Without `most`.
pub(crate) fn points(domain: &Domain) -> u64 {
    // As long as bounds are numbers, the product of their distances.
    let mut number: i128 = 1;
    let mut polynomial: Option<Polynomial> = None;
    for level in (0..domain.depth).rev() {
        let bounds = &domain.levels[level];
        let trips = bounds.below.minus(&bounds.from);
        match (&polynomial, trips.as_number()) {
            (None, Some(trips)) => number *= i128::from(trips.max(0)),
            (None, None) => polynomial = Some(Polynomial::number(number).times(&Polynomial::of(&trips))),
            (Some(inner), _) => {
                let sum = inner.summed(level, bounds);
                match sum.as_number() {
                    Some(sum) => (number, polynomial) = (sum, None),
                    None => polynomial = Some(sum),
                }
            }
        }
    }
    u64::try_from(number.max(0)).unwrap_or(u64::MAX)
}
