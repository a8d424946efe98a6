//! Loops whose iterations do not depend on each other.

use crate::affine::Affine;
use crate::microblock::{Loop, Microblock, Reference, Statement};
use crate::piece::Piece;

/// A loop variable, by name, of which each value can be given to somebody else: the loops of that name stand around all statements and have fixed bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The name.
    pub name: String,
    /// How many values it has, over all loops of the name.
    pub values: u64,
    /// The least of them.
    first: i64,
    /// From one to the next.
    step: i64,
}

/// Which iteration of one of its loops a value of an axis is: iteration `sign * (value - offset)`, where values are counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sign: i64,
    pub(crate) offset: i64,
}

impl Place {
    /// The iteration of a value.
    #[inline]
    pub(crate) fn iteration(self, value: i64) -> i64 {
        self.sign * (value - self.offset)
    }
}

/// The value of a loop's variable in its first iteration, and what each other iteration adds; nothing if other loops change it.
pub(crate) fn fixed(one: &Loop) -> Option<(i64, i64)> {
    let mut value = one.value;
    let by = std::mem::take(&mut value.by[one.level]);
    value.as_number().map(|from| (from, by))
}

impl Axis {
    /// The loops of a name, if they can be one: their bounds are numbers, and each has the values of the others or some between.
    pub(crate) fn of(microblock: &Microblock, name: &str) -> Option<Axis> {
        let own = || microblock.loops.iter().filter(|one| one.name == name);
        let (begin, by) = fixed(own().next()?)?;
        let step = by.abs();
        let mut reach: Option<(i64, i64)> = None;
        for one in own() {
            let (from, by) = fixed(one)?;
            let trips = one.trips.as_number().filter(|_| one.most.is_none())?;
            if by.abs() != step || (from - begin) % step != 0 {
                return None;
            }
            if trips > 0 {
                let last = from + by * (trips - 1);
                let (least, most) = reach.unwrap_or((from, from));
                reach = Some((least.min(from).min(last), most.max(from).max(last)));
            }
        }
        let first = reach.map_or(begin, |(least, _)| least);
        let values = reach.map_or(0, |(least, most)| (most - least) / step + 1) as u64;
        Some(Axis { name: name.to_owned(), values, first, step })
    }

    /// Where its values are in one of its loops.
    pub(crate) fn place(&self, one: &Loop) -> Place {
        let (from, by) = fixed(one).unwrap_or((self.first, self.step));
        Place { sign: by.signum(), offset: (from - self.first) / self.step }
    }

    /// Whether each statement has one of its loops around it, and no two values touch the same element if one of them writes it.
    fn is_independent(&self, microblock: &Microblock) -> bool {
        let mut all = Vec::new();
        for statement in &microblock.statements {
            if level(microblock, &self.name, statement.parent).is_none() {
                return false;
            }
            for (id, reference) in statement.references.iter().enumerate() {
                all.push((reference.array, id == 0, forms(microblock, self, statement, reference)));
            }
        }
        let stores = all.iter().filter(|(_, is_store, _)| *is_store);
        stores.into_iter().all(|(array, _, stored)| {
            let mut same = all.iter().filter(|(other, ..)| other == array);
            same.all(|(.., other)| is_apart(stored, other))
        })
    }
}

impl Microblock {
    /// The loops whose iterations do not depend on each other, from the outermost. Any of them together are independent as well: two
    /// iterations that differ in one do not touch the same element, whatever the others are.
    pub fn axes(&self) -> Vec<Axis> {
        let mut names: Vec<&str> = Vec::new();
        for one in &self.loops {
            if !names.contains(&one.name.as_str()) {
                names.push(&one.name);
            }
        }
        let axes = names.into_iter().filter_map(|name| Axis::of(self, name));
        axes.filter(|axis| axis.is_independent(self)).collect()
    }
}

/// The loop of a name around a place, by number.
pub(crate) fn around(microblock: &Microblock, name: &str, parent: Option<usize>) -> Option<usize> {
    let (chain, depth) = microblock.chain(parent);
    chain[..depth].iter().copied().find(|id| microblock.loops[*id].name == name)
}

/// Its level.
pub(crate) fn level(microblock: &Microblock, name: &str, parent: Option<usize>) -> Option<usize> {
    around(microblock, name, parent).map(|id| microblock.loops[id].level)
}

/// A subscript as the test of dependences sees it.
pub(crate) struct Form {
    /// What one more value of the axis adds.
    factor: i64,
    /// The least and the most of the rest.
    rest: (i64, i64),
    /// And of all of it.
    whole: (i64, i64),
}

/// The subscripts of a reference.
pub(crate) fn forms(
    microblock: &Microblock,
    axis: &Axis,
    statement: &Statement,
    reference: &Reference,
) -> Vec<Form> {
    let own = around(microblock, &axis.name, statement.parent);
    let domain = Piece::whole(0).domain(microblock, statement.parent, None).unwrap_or_default();
    let form = |subscript: &Affine| {
        let mut rest = *subscript;
        let mut factor = 0;
        if let Some(one) = own.map(|id| &microblock.loops[id]) {
            let Place { sign, offset } = axis.place(one);
            factor = sign * std::mem::take(&mut rest.by[one.level]);
            rest.constant -= factor * offset;
        }
        let mut reach: Option<[(i64, i64); 2]> = None;
        domain.each(&mut |side| {
            let mut side = *side;
            if side.tighten() {
                let both = [side.range(rest), side.range(*subscript)];
                let own = reach.unwrap_or(both);
                reach = Some([0, 1].map(|n| (own[n].0.min(both[n].0), own[n].1.max(both[n].1))));
            }
        });
        // What is never executed has no elements, and none that are those of others.
        let [rest, whole] = reach.unwrap_or([(0, 0), (i64::MAX, i64::MIN)]);
        Form { factor, rest, whole }
    };
    reference.subscripts.iter().map(form).collect()
}

/// Whether two references that are the same element are so for the same value of the axis.
pub(crate) fn is_apart(a: &[Form], b: &[Form]) -> bool {
    // How many values the first may be behind the second, by the dimensions so far.
    let (mut least, mut most) = (i64::MIN, i64::MAX);
    for (a, b) in a.iter().zip(b) {
        if a.whole.0 > b.whole.1 || b.whole.0 > a.whole.1 {
            return true;
        }
        if a.factor != b.factor {
            continue;
        }
        // `factor * values` makes up for what the rest of the second is beyond that of the first.
        let (low, high) = (b.rest.0 - a.rest.1, b.rest.1 - a.rest.0);
        let factor = a.factor.abs();
        if factor == 0 {
            continue;
        }
        let (low, high) = if a.factor > 0 { (low, high) } else { (-high, -low) };
        least = least.max(-(-low).div_euclid(factor));
        most = most.min(high.div_euclid(factor));
    }
    least > most || (least, most) == (0, 0)
}
