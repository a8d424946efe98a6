//! Lowering: names are resolved, from source text to loops, statements and sums of iteration numbers.

use std::collections::BTreeMap;

use config::Diagnostic;

use super::syntax::{self, Expression, For, Item, Kind};
use super::{Code, prove};
use crate::domain::{Affine, DEPTH};
use crate::kernel::{Array, Binary, Loop, Microblock, Node, Reference, Site, Statement, Term, Unary};

/// Maximum number of loops and statements of a microblock.
const MAX_NODES: usize = 256;

/// Positions of each statement's references in the code.
pub(super) type Written = Vec<Vec<usize>>;

/// Names that are defined everywhere.
pub(super) struct Scope<'k> {
    pub(super) sizes: &'k BTreeMap<String, i64>,
    pub(super) scalars: &'k BTreeMap<String, f64>,
    pub(super) arrays: &'k [Array],
}

impl Scope<'_> {
    /// Evaluates an expression of numbers and sizes.
    pub(super) fn number(&self, code: &Code<'_>, sum: &Expression) -> Result<i64, Diagnostic> {
        let affine = Builder::new(self, code).affine(sum)?;
        affine.as_number().ok_or_else(|| code.fault(sum.at, "expected a number or an expression of sizes"))
    }
}

/// Reads a microblock.
pub(super) fn microblock(scope: &Scope<'_>, code: &Code<'_>) -> Result<(Microblock, Written), Diagnostic> {
    let items = syntax::items(code)?;
    if items.is_empty() {
        return Err(code.fault(0, "the microblock has no statements"));
    }
    let mut builder = Builder::new(scope, code);
    builder.microblock.body = builder.nodes(&items)?;
    let Builder { mut microblock, written, .. } = builder;
    microblock.sites = sites(&microblock);
    Ok((microblock, written))
}

struct Builder<'s, 'k, 't> {
    scope: &'s Scope<'k>,
    code: &'s Code<'t>,
    microblock: Microblock,
    written: Written,
    /// Loops around the current place.
    around: Vec<usize>,
    /// Terms of the current statement.
    terms: Vec<Term>,
    references: Vec<Reference>,
    at: Vec<usize>,
}

impl<'s, 'k, 't> Builder<'s, 'k, 't> {
    fn new(scope: &'s Scope<'k>, code: &'s Code<'t>) -> Builder<'s, 'k, 't> {
        let microblock = Microblock {
            about: String::new(),
            text: 0,
            body: Vec::new(),
            loops: Vec::new(),
            statements: Vec::new(),
            split: None,
            held: Vec::new(),
            sites: Vec::new(),
            place: Vec::new(),
        };
        Builder {
            scope,
            code,
            microblock,
            written: Vec::new(),
            around: Vec::new(),
            terms: Vec::new(),
            references: Vec::new(),
            at: Vec::new(),
        }
    }

    fn nodes(&mut self, items: &[Item]) -> Result<Vec<Node>, Diagnostic> {
        let mut nodes = Vec::new();
        for item in items {
            let at = match item {
                Item::Loop(one) => one.at,
                Item::Statement { at, .. } => *at,
            };
            if self.microblock.loops.len() + self.microblock.statements.len() >= MAX_NODES {
                let what = format!("more than {MAX_NODES} loops and statements in one microblock");
                return Err(self.code.fault(at, what));
            }
            nodes.push(match item {
                Item::Loop(one) => self.a_loop(one, nodes.len())?,
                Item::Statement { target, operator, value, .. } => {
                    self.microblock.place.push(nodes.len());
                    self.statement(at, target, *operator, value)?
                }
            });
        }
        Ok(nodes)
    }

    fn a_loop(&mut self, one: &For, node: usize) -> Result<Node, Diagnostic> {
        let For { at, name, .. } = one;
        let level = self.around.len();
        let fault = |what: String| Err(self.code.fault(*at, what));
        if level == DEPTH {
            return fault(format!("more than {DEPTH} nested loops"));
        }
        if self.is_known(name) {
            return fault(format!("`{name}` is already defined"));
        }
        if one.body.is_empty() {
            return fault(format!("the loop over `{name}` is empty"));
        }
        let step = match &one.step {
            None => 1,
            Some(step) => match self.affine(step)?.as_number() {
                Some(number) if (1..=1 << 31).contains(&number) => number,
                _ => return Err(self.code.fault(step.at, "a step is a number from 1 to 2^31, or a size")),
            },
        };
        let from = self.affine(&one.from)?;
        let (trips, most) = match &one.below.kind {
            Kind::Call("min", arguments) => {
                let first = self.trips(&from, &arguments[0], step)?;
                let second = self.trips(&from, &arguments[1], step)?;
                self.least(first, second, one.below.at)?
            }
            _ => (self.trips(&from, &one.below, step)?, None),
        };
        let Some(value) = value(&from, &trips, step, level, one.is_reversed, most.is_some()) else {
            let what = "a reversed loop cannot have `min` in its bound, or numbers beyond 2^40";
            return fault(what.to_owned());
        };
        let id = self.microblock.loops.len();
        self.microblock.loops.push(Loop {
            name: name.clone(),
            parent: self.around.last().copied(),
            level,
            value,
            trips,
            most,
            is_split: false,
            body: Vec::new(),
            node,
        });
        prove::trips(&self.microblock, id, self.code, one)?;
        self.around.push(id);
        let body = self.nodes(&one.body);
        self.around.pop();
        self.microblock.loops[id].body = body?;
        Ok(Node::Loop(id))
    }

    /// Returns the number of steps up to a bound.
    fn trips(&self, from: &Affine, below: &Expression, step: i64) -> Result<Affine, Diagnostic> {
        let large = || self.too_large(below.at);
        let distance = self.affine(below)?.checked_with(from, -1).ok_or_else(large)?;
        distance.shifted(step - 1).divided(step).ok_or_else(|| {
            let what = format!(
                "the trip count of a loop with step {step} is not a whole sum of the variables around it"
            );
            self.code
                .fault(below.at, what)
                .help("its bounds may differ by a number, or by multiples of the step")
        })
    }

    /// Returns the two arguments of a `min`, or the lesser one if it is known.
    fn least(&self, a: Affine, b: Affine, at: usize) -> Result<(Affine, Option<Affine>), Diagnostic> {
        let apart = a.checked_with(&b, -1).ok_or_else(|| self.too_large(at))?;
        let mut levels = (0..DEPTH).filter(|level| apart.by[*level] != 0);
        match (levels.next(), levels.next()) {
            (None, _) => Ok((if apart.constant <= 0 { a } else { b }, None)),
            (Some(level), None) if self.has_fixed_trips(level) => Ok((a, Some(b))),
            _ => {
                let what =
                    "the arguments of this `min` differ by more than one loop's variable with fixed bounds";
                let help = "`for kk in 0..n step T` around it gives `min(kk + T, n)`";
                Err(self.code.fault(at, what).help(help))
            }
        }
    }

    fn has_fixed_trips(&self, level: usize) -> bool {
        let one = &self.microblock.loops[self.around[level]];
        one.trips.as_number().is_some() && one.most.is_none()
    }

    fn too_large(&self, at: usize) -> Diagnostic {
        self.code.fault(at, "this gives numbers beyond 2^40")
    }

    fn statement(
        &mut self,
        at: usize,
        target: &Expression,
        operator: Option<Binary>,
        value: &Expression,
    ) -> Result<Node, Diagnostic> {
        let Kind::Element(array, subscripts) = &target.kind else {
            let name = match &target.kind {
                Kind::Name(name) => name.as_str(),
                _ => "",
            };
            let known = self.scope.arrays.iter().any(|array| array.name == name);
            let what = if known {
                self.wrong_subscripts(target, name, 0)
            } else {
                self.unknown(target.at, name, true)
            };
            return Err(what);
        };
        let target = self.reference(target, array, subscripts)?;
        match operator {
            None => {
                self.term(value)?;
            }
            Some(operator) => {
                let old = self.push(Term::Load(target));
                let by = self.term(value)?;
                self.push(Term::Binary(operator, old, by));
            }
        }
        let id = self.microblock.statements.len();
        self.microblock.statements.push(Statement {
            parent: self.around.last().copied(),
            references: std::mem::take(&mut self.references),
            terms: std::mem::take(&mut self.terms),
            line: self.code.line(at),
        });
        self.written.push(std::mem::take(&mut self.at));
        Ok(Node::Statement(id))
    }

    fn push(&mut self, term: Term) -> usize {
        self.terms.push(term);
        self.terms.len() - 1
    }

    /// Adds the terms of a value; returns the index of its last one.
    fn term(&mut self, value: &Expression) -> Result<usize, Diagnostic> {
        let term = match &value.kind {
            Kind::Whole(number) => Term::Constant(*number as f64),
            Kind::Real(number) => Term::Constant(*number),
            Kind::Name(name) => self.named(value, name)?,
            Kind::Element(array, subscripts) => Term::Load(self.reference(value, array, subscripts)?),
            Kind::Negative(inner) => Term::Unary(Unary::Negate, self.term(inner)?),
            Kind::Operation(operator, a, b) => {
                let a = self.term(a)?;
                Term::Binary(*operator, a, self.term(b)?)
            }
            Kind::Call(function, arguments) => {
                let first = self.term(&arguments[0])?;
                match (*function, arguments.get(1)) {
                    ("min", Some(second)) => Term::Binary(Binary::Minimum, first, self.term(second)?),
                    (_, Some(second)) => Term::Binary(Binary::Maximum, first, self.term(second)?),
                    ("sqrt", None) => Term::Unary(Unary::SquareRoot, first),
                    (_, None) => Term::Unary(Unary::Absolute, first),
                }
            }
            Kind::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let condition = self.term(condition)?;
                let yes = self.term(yes)?;
                Term::Select(condition, yes, self.term(no)?)
            }
        };
        Ok(self.push(term))
    }

    /// Resolves a name used as a value.
    fn named(&self, value: &Expression, name: &str) -> Result<Term, Diagnostic> {
        if let Some(scalar) = self.scope.scalars.get(name) {
            return Ok(Term::Constant(*scalar));
        }
        if let Some(size) = self.scope.sizes.get(name) {
            return Ok(Term::Constant(*size as f64));
        }
        if self.scope.arrays.iter().any(|array| array.name == name) {
            return Err(self.wrong_subscripts(value, name, 0));
        }
        self.variable(name).map(Term::Index).ok_or_else(|| self.unknown(value.at, name, false))
    }

    fn variable(&self, name: &str) -> Option<Affine> {
        let own = self.around.iter().map(|id| &self.microblock.loops[*id]);
        own.rev().find(|one| one.name == name).map(|one| one.value)
    }

    fn is_known(&self, name: &str) -> bool {
        self.variable(name).is_some()
            || self.scope.sizes.contains_key(name)
            || self.scope.scalars.contains_key(name)
            || self.scope.arrays.iter().any(|array| array.name == name)
    }

    fn unknown(&self, at: usize, name: &str, is_array: bool) -> Diagnostic {
        let arrays = self.scope.arrays.iter().map(|array| array.name.clone());
        if is_array {
            let what = format!("unknown array `{name}`");
            return self.code.fault(at, what).allowed(name, arrays);
        }
        let loops = self.around.iter().map(|id| self.microblock.loops[*id].name.clone());
        let numbers = self.scope.sizes.keys().chain(self.scope.scalars.keys()).cloned();
        let what = format!("`{name}` is not a loop variable here, a size, a scalar or an array");
        self.code.fault(at, what).allowed(name, loops.chain(numbers).chain(arrays))
    }

    fn wrong_subscripts(&self, element: &Expression, name: &str, given: usize) -> Diagnostic {
        let array = self.scope.arrays.iter().find(|array| array.name == name);
        let wanted = array.map_or(0, |array| array.shape.len());
        let what = format!("`{name}` has {wanted} dimensions, but {given} subscripts here");
        self.code.fault(element.at, what)
    }

    /// Returns the index of an element in the statement's references.
    fn reference(
        &mut self,
        element: &Expression,
        name: &str,
        written: &[Expression],
    ) -> Result<usize, Diagnostic> {
        let Some(id) = self.scope.arrays.iter().position(|array| array.name == name) else {
            return Err(self.unknown(element.at, name, true));
        };
        let array = &self.scope.arrays[id];
        if written.len() != array.shape.len() {
            return Err(self.wrong_subscripts(element, name, written.len()));
        }
        let mut byte = Affine::default();
        let mut subscripts = Vec::new();
        for (subscript, n) in written.iter().zip(&array.shape) {
            let subscript = self.affine(subscript)?;
            // Sizes of arrays are small, so both conversions hold.
            let outer = Affine::default().checked_with(&byte, *n as i64);
            let sum = outer.and_then(|outer| outer.checked_with(&subscript, 1));
            byte = sum.ok_or_else(|| self.too_large(element.at))?;
            subscripts.push(subscript);
        }
        if let Some(known) =
            self.references.iter().position(|own| own.array == id && own.subscripts == subscripts)
        {
            return Ok(known);
        }
        let byte = Affine::default().with(&byte, array.element.bytes() as i64);
        let text = self.code.text[element.span.0..element.span.1].to_owned();
        self.references.push(Reference { array: id, subscripts, byte, text, register: None });
        self.at.push(element.at);
        Ok(self.references.len() - 1)
    }

    /// Reads a sum of loop variables and sizes.
    fn affine(&self, sum: &Expression) -> Result<Affine, Diagnostic> {
        let large = || self.too_large(sum.at);
        match &sum.kind {
            Kind::Whole(number) => Ok(Affine::number(*number)),
            Kind::Name(name) => match (self.variable(name), self.scope.sizes.get(name)) {
                (Some(value), _) => Ok(value),
                (None, Some(size)) => Ok(Affine::number(*size)),
                (None, None) if self.is_known(name) => Err(self.not_affine(sum)),
                (None, None) => Err(self.unknown_in_a_sum(sum.at, name)),
            },
            Kind::Negative(inner) => Ok(Affine::default().minus(&self.affine(inner)?)),
            Kind::Operation(operator, a, b) => {
                let (a, b) = (self.affine(a)?, self.affine(b)?);
                match (operator, a.as_number(), b.as_number()) {
                    (Binary::Add, ..) => a.checked_with(&b, 1).ok_or_else(large),
                    (Binary::Subtract, ..) => a.checked_with(&b, -1).ok_or_else(large),
                    (Binary::Multiply, Some(factor), _) => {
                        Affine::default().checked_with(&b, factor).ok_or_else(large)
                    }
                    (Binary::Multiply, _, Some(factor)) => {
                        Affine::default().checked_with(&a, factor).ok_or_else(large)
                    }
                    (Binary::Divide, Some(a), Some(b)) if b > 0 => Ok(Affine::number(a.div_euclid(b))),
                    _ => Err(self.not_affine(sum)),
                }
            }
            Kind::Real(_) | Kind::Element(..) | Kind::Call(..) | Kind::Choice(_) => Err(self.not_affine(sum)),
        }
    }

    fn unknown_in_a_sum(&self, at: usize, name: &str) -> Diagnostic {
        let loops = self.around.iter().map(|id| self.microblock.loops[*id].name.clone());
        let what = format!("`{name}` is neither a loop variable here nor a size");
        self.code.fault(at, what).allowed(name, loops.chain(self.scope.sizes.keys().cloned()))
    }

    fn not_affine(&self, sum: &Expression) -> Diagnostic {
        let what = "a bound or subscript must be a sum of loop variables and sizes, each times a number";
        self.code
            .fault(sum.at, what)
            .help("such as `2*i + n - 1`; for sizes, `n / 2` is rounded down; `min(a, b)` is allowed only at the end of a bound")
    }
}

/// Returns the variable's value in an iteration; none if it cannot be expressed.
fn value(
    from: &Affine,
    trips: &Affine,
    step: i64,
    level: usize,
    is_reversed: bool,
    has_most: bool,
) -> Option<Affine> {
    let mut own = Affine::default();
    own.by[level] = step;
    if !is_reversed {
        return from.checked_with(&own, 1);
    }
    let last = from.checked_with(&trips.shifted(-1), step)?;
    if has_most { None } else { last.checked_with(&own, -1) }
}

/// Returns references by array and subscripts, each once for adjacent statements, of which a piece has all or none;
/// in the order of their arrays.
fn sites(microblock: &Microblock) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    for (at, statement) in microblock.statements.iter().enumerate() {
        let place = microblock.place[at];
        let before = microblock.inside(statement.parent)[..place].iter().rev();
        let first = place - before.take_while(|node| matches!(node, Node::Statement(_))).count();
        for (id, one) in statement.references.iter().enumerate() {
            let reads = statement.terms.contains(&Term::Load(id));
            let writes = id == 0;
            let same = |site: &&mut Site| {
                let is_beside = site.parent == statement.parent && site.nodes.0 >= first;
                is_beside && site.array == one.array && site.subscripts == one.subscripts
            };
            match sites.iter_mut().find(same) {
                Some(site) => {
                    site.nodes.1 = place;
                    site.reads |= reads;
                    site.writes |= writes;
                }
                None => sites.push(Site {
                    array: one.array,
                    subscripts: one.subscripts.clone(),
                    parent: statement.parent,
                    nodes: (place, place),
                    reads,
                    writes,
                }),
            }
        }
    }
    sites.sort_by_key(|site| site.array);
    sites
}
