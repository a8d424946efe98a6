//! What an iteration of a loop needs of an earlier one.

use crate::microblock::{Microblock, Node, Reference, Term};

/// A value that one statement stores and another loads, in the same loop.
///
/// The chain of operations from that load to the store of `to` is on the path of terms between them: a recurrence is a circle of such
/// dependences, and lasts as long as its chains for as many iterations as their distances make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The statement that stores, by number.
    pub from: usize,
    /// The statement that loads, by number.
    pub to: usize,
    /// What it loads, by its place in its references.
    pub load: usize,
    /// So many iterations later; 0 in the same one.
    pub distance: u64,
}

impl Microblock {
    /// The dependences between the statements that stand directly in a loop, inside one passing of it.
    ///
    /// Where subscripts do not say how far apart two references to an array are, the distance is 1, as a compiler would assume.
    pub fn dependences(&self, id: usize) -> Vec<Dependence> {
        let one = &self.loops[id];
        let own: Vec<usize> = one
            .body
            .iter()
            .filter_map(|node| match node {
                Node::Statement(id) => Some(*id),
                Node::Loop(_) => None,
            })
            .collect();
        let mut found = Vec::new();
        for from in &own {
            let stored = &self.statements[*from].references[0];
            for to in &own {
                let statement = &self.statements[*to];
                for (load, reference) in statement.references.iter().enumerate() {
                    let is_loaded = statement.terms.contains(&Term::Load(load));
                    if !is_loaded || reference.array != stored.array {
                        continue;
                    }
                    if let Some(distance) = distance(stored, reference, one.level, from < to) {
                        found.push(Dependence { from: *from, to: *to, load, distance });
                    }
                }
            }
        }
        found
    }
}

/// How many iterations after the store the same element is loaded; nothing if never.
fn distance(stored: &Reference, loaded: &Reference, level: usize, is_before: bool) -> Option<u64> {
    // The distance that each dimension asks for; those that the loop does not change ask for none.
    let mut asked: Option<i64> = None;
    for (store, load) in stored.subscripts.iter().zip(&loaded.subscripts) {
        let apart = store.minus(load);
        if apart.deepest().is_some() {
            return Some(1);
        }
        let by = store.by[level];
        match (by, apart.constant) {
            (0, 0) => {}
            (0, _) => return None,
            (_, apart) if apart % by != 0 || asked.is_some_and(|own| own != apart / by) => return None,
            (_, apart) => asked = Some(apart / by),
        }
    }
    match asked {
        None => Some(u64::from(!is_before)),
        Some(0) => is_before.then_some(0),
        Some(distance) => u64::try_from(distance).ok(),
    }
}
