//! Memory within a pass.

use crate::program::dnn::eager::{Eager, work};
use crate::program::dnn::memory::lay_out;
use crate::program::dnn::model::bert::{Bert, SIZES};
use crate::program::dnn::model::gpt2::{self, Gpt2};
use crate::program::dnn::model::resnet::ResNet;
use crate::program::dnn::network::Plan;
use crate::program::dnn::store::Store;

fn plans() -> [Plan; 3] {
    [
        Plan::new("bert", Box::new(Bert::new(SIZES[3].1, 77, 4)), 1),
        Plan::new("gpt2", Box::new(Gpt2::new(gpt2::SIZES[0].1, 3, 4, 4)), 1),
        Plan::new("resnet50", Box::new(ResNet::new(2, 64, 4)), 1),
    ]
}

#[test]
fn no_two_tensors_that_live_at_once_overlap() {
    for plan in plans() {
        for number in 0..plan.model.passes() {
            let pass = plan.pass(number);
            for (n, a) in pass.places.iter().enumerate() {
                assert!(a.offset.is_multiple_of(512) && a.offset + a.bytes <= pass.bytes);
                for b in &pass.places[n + 1..] {
                    let apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
                    assert!(apart || a.last < b.first || b.last < a.first, "{}: {a:?} {b:?}", plan.name);
                }
            }
        }
    }
}

#[test]
fn memory_is_used_again() {
    for plan in plans() {
        let pass = plan.pass(0);
        let all: u64 = pass.places.iter().map(|place| place.bytes).sum();
        // What lives at once at the busiest kernel is needed in any case.
        let live = |at: usize| {
            let lives = pass.places.iter().filter(|p| (p.first..=p.last).contains(&at));
            lives.map(|place| place.bytes).sum::<u64>()
        };
        let least = (0..pass.tasks.len()).map(live).max().unwrap();
        assert!(pass.bytes >= least && pass.bytes < 2 * least, "{}: {} for {least}", plan.name, pass.bytes);
        assert!(pass.bytes * 4 < all, "{}: {} of {all}", plan.name, pass.bytes);
    }
}

#[test]
fn a_chain_takes_turns_in_two_pieces() {
    let mut store = Store::default();
    let x = store.buffer("x", &[1000], 4);
    let mut eager = Eager::new(&store);
    let mut last = x;
    for _ in 0..6 {
        last = eager.map("relu", &[&last], 4, work::ONE);
    }
    let pass = lay_out(eager);
    let offsets: Vec<u64> = pass.places.iter().map(|place| place.offset).collect();
    assert_eq!((offsets, pass.bytes), (vec![0, 4096, 0, 4096, 0, 4096], 8192));
}
