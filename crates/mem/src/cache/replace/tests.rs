//! Every policy against its contract and against a naive reference.

use super::*;
use crate::cache::tags::{Shape, Tags};
use proptest::prelude::*;

/// What a policy is told, on one set of `ways`.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Touches a full way.
    Touch(u32),
    /// Empties a way.
    Leave(u32),
    /// Fills an empty way, or one of those in the mask.
    Enter(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => any::<u32>().prop_map(Step::Touch),
        1 => any::<u32>().prop_map(Step::Leave),
        4 => any::<u32>().prop_map(Step::Enter),
    ];
    prop::collection::vec(step, 1..80)
}

/// One set, described in the words of each policy's paper; chooses among the ways in `mask`, all of which are full.
trait Reference {
    fn enter(&mut self, way: u32);
    fn touch(&mut self, way: u32);
    fn victim(&mut self, mask: u32) -> u32;
}

/// Ways in the order of their last use or, with `stays`, of their entry.
struct List {
    order: Vec<u32>,
    stays: bool,
}

impl Reference for List {
    fn enter(&mut self, way: u32) {
        self.order.retain(|w| *w != way);
        self.order.push(way);
    }
    fn touch(&mut self, way: u32) {
        if !self.stays {
            self.enter(way);
        }
    }
    fn victim(&mut self, mask: u32) -> u32 {
        *self.order.iter().find(|w| mask >> **w & 1 == 1).expect("a full way")
    }
}

/// A tree of nodes, each of which remembers the half that was used last.
enum Tree {
    Leaf(u32),
    Node { low: Box<Tree>, high: Box<Tree>, last_high: bool },
}

impl Tree {
    fn new(ways: std::ops::Range<u32>) -> Tree {
        if ways.len() == 1 {
            return Tree::Leaf(ways.start);
        }
        let middle = ways.start + ways.len() as u32 / 2;
        let (low, high) = (Tree::new(ways.start..middle), Tree::new(middle..ways.end));
        // At first the lower half goes first.
        Tree::Node { low: Box::new(low), high: Box::new(high), last_high: true }
    }
    fn has(&self, mask: u32) -> bool {
        match self {
            Tree::Leaf(way) => mask >> way & 1 == 1,
            Tree::Node { low, high, .. } => low.has(mask) || high.has(mask),
        }
    }
}

impl Reference for Tree {
    fn enter(&mut self, way: u32) {
        self.touch(way);
    }
    fn touch(&mut self, way: u32) {
        if let Tree::Node { low, high, last_high } = self {
            *last_high = high.has(1 << way);
            if *last_high { high.touch(way) } else { low.touch(way) }
        }
    }
    fn victim(&mut self, mask: u32) -> u32 {
        match self {
            Tree::Leaf(way) => *way,
            Tree::Node { low, high, last_high } => {
                let take_low = if *last_high { low.has(mask) } else { !high.has(mask) };
                if take_low { low.victim(mask) } else { high.victim(mask) }
            }
        }
    }
}

/// The algorithm as Jaleel et al. print it: look for a 3 from the left; increment all, and look again.
struct Intervals(Vec<u32>);

impl Reference for Intervals {
    fn enter(&mut self, way: u32) {
        self.0[way as usize] = 2;
    }
    fn touch(&mut self, way: u32) {
        self.0[way as usize] = 0;
    }
    fn victim(&mut self, mask: u32) -> u32 {
        loop {
            let found = (0..self.0.len()).find(|w| self.0[*w] == 3 && mask >> w & 1 == 1);
            if let Some(way) = found {
                return way as u32;
            }
            self.0.iter_mut().for_each(|interval| *interval = (*interval + 1).min(3));
        }
    }
}

fn reference(policy: &ReplacementPolicy, ways: u32) -> Option<Box<dyn Reference>> {
    Some(match policy.name() {
        "lru" => Box::new(List { order: Vec::new(), stays: false }),
        "fifo" => Box::new(List { order: Vec::new(), stays: true }),
        "tree_plru" => Box::new(Tree::new(0..ways)),
        "srrip" => Box::new(Intervals(vec![3; ways as usize])),
        "random" => return None,
        other => panic!("{other} needs a reference"),
    })
}

/// Plays the steps on the second of two sets.
fn play(policy: &ReplacementPolicy, ways: u32, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut tested = policy.build(&Places { sets: 2, ways, seed: 3 });
    let mut naive = reference(policy, ways);
    let all = u32::MAX >> (32 - ways);
    let mut full = 0u32;
    for step in steps {
        match *step {
            Step::Touch(draw) if full >> (draw % ways) & 1 == 1 => {
                tested.touch(1, draw % ways);
                naive.iter_mut().for_each(|naive| naive.touch(draw % ways));
            }
            // The references know no empty ways: SRRIP's become distant, the others do not care.
            Step::Leave(draw) if full >> (draw % ways) & 1 == 1 && policy.name() != "srrip" => {
                tested.leave(1, draw % ways);
                full &= !(1 << (draw % ways));
            }
            Step::Touch(_) | Step::Leave(_) => {}
            Step::Enter(mask) => {
                let way = if full != all {
                    (!full).trailing_zeros()
                } else {
                    let may = |way: u32| mask >> way & 1 == 1;
                    let victim = tested.victim(1, &may);
                    prop_assert_eq!(tested.victim(1, &may), victim, "asking changes nothing");
                    prop_assert_eq!(victim.is_some(), mask & all != 0);
                    let Some(way) = victim else { continue };
                    prop_assert!(may(way) && way < ways);
                    if let Some(naive) = &mut naive {
                        prop_assert_eq!(way, naive.victim(mask & all));
                    }
                    way
                };
                full |= 1 << way;
                tested.enter(1, way);
                naive.iter_mut().for_each(|naive| naive.enter(way));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn policies_decide_as_their_references(ways in 1..9u32, steps in steps()) {
        for policy in ReplacementPolicy::all_defaults() {
            play(&policy, ways, &steps)?;
        }
    }
}

#[test]
fn srrip_example_of_the_paper() {
    // Jaleel et al.'s mixed pattern, a1 a2 a2 a1 b1 b2 b3 b4 a1 a2 on four ways: a1 and a2 outlive the scan.
    let mut tags: Tags<()> = Tags::new(Shape { sets: 1, ways: 4 }, &ReplacementPolicy::srrip);
    let (a1, a2, scan) = (1, 2, [11, 12, 13, 14]);
    let mut hits = Vec::new();
    for line in [a1, a2, a2, a1].into_iter().chain(scan).chain([a1, a2]) {
        match tags.find(line) {
            Some(place) => {
                tags.touch(place);
                hits.push(line);
            }
            None => {
                tags.insert(line, (), |()| true).expect("room");
            }
        }
    }
    assert_eq!(hits, [a2, a1, a1, a2]);
}

#[test]
fn an_emptied_way_makes_nothing_older() {
    let mut srrip = ReplacementPolicy::srrip.build(&Places { sets: 1, ways: 2, seed: 0 });
    srrip.enter(0, 0);
    srrip.enter(0, 1);
    srrip.touch(0, 0);
    srrip.leave(0, 1);
    srrip.enter(0, 1);
    // Way 0 is still expected soon, way 1 has just come: 0 against 2.
    assert_eq!(srrip.victim(0, &|_| true), Some(1));
}

#[test]
fn random_draws_uniformly_among_those_that_may_go() {
    let draws = |seed: u64| {
        let mut random = ReplacementPolicy::random.build(&Places { sets: 1, ways: 8, seed });
        let mut draw = || {
            let way = random.victim(0, &|way| way % 2 == 1).expect("four may go");
            random.enter(0, way);
            way
        };
        (0..4000).map(|_| draw()).collect::<Vec<u32>>()
    };
    let one = draws(1);
    // Chi-square with 3 degrees of freedom: 16.3 is the 0.999 quantile.
    let count = |way: u32| one.iter().filter(|w| **w == way).count() as f64;
    let chi: f64 = [1, 3, 5, 7].map(|way| (count(way) - 1000.0).powi(2) / 1000.0).iter().sum();
    assert!(chi < 16.3, "{chi}");
    assert_eq!(one, draws(1));
    assert_ne!(one, draws(2));
}
