//! Sizes against published figures, kernels against naive loops.

mod addresses;
mod memory;
mod models;
mod sequence;

use std::collections::BTreeMap;

use proto::simt::{InstKind, LANES, Tape};

use super::eager::Eager;
use super::model::Model;
use super::network::{Network, Plan};
use super::selection::Selection;
use super::store::Store;
use crate::program::{Census, Program, Slots, WarpAt, census};

/// A model of a few operators.
pub(super) struct Few<F: Fn(&mut Eager)> {
    store: Store,
    operators: F,
}

impl<F: Fn(&mut Eager)> Model for Few<F> {
    fn store(&self) -> &Store {
        &self.store
    }
    fn passes(&self) -> u32 {
        1
    }
    fn record(&self, _: u32, eager: &mut Eager) {
        (self.operators)(eager);
    }
}

/// How often each byte address was where an element was loaded or stored.
#[derive(Default, Debug, PartialEq)]
pub(super) struct Traffic {
    pub(super) loads: BTreeMap<u64, u64>,
    pub(super) stores: BTreeMap<u64, u64>,
}

/// Where the store's tensors begin, and where the pass's memory does.
pub(super) type Bases = Vec<u64>;

pub(super) fn program(plan: Plan) -> Slots<Network> {
    let all = Selection::Range(0..plan.count());
    Slots::new(Network::new(plan, all))
}

/// Runs operators; all elements have `width` bytes.
pub(super) fn traffic(
    store: Store,
    width: u64,
    operators: impl Fn(&mut Eager) + Clone + 'static,
) -> (Traffic, Bases) {
    let again = Few { store: store.clone(), operators: operators.clone() };
    let checked: Census = census(&mut program(Plan::new("few", Box::new(again), 1)));
    assert_eq!(checked.uneven_blocks, 0, "warps of a block pass different barriers");
    let mut program = program(Plan::new("few", Box::new(Few { store, operators }), 1));
    let bases = program.space().allocations().iter().map(|a| a.base).collect();
    let mut traffic = Traffic::default();
    while let Some(kernel) = program.launch() {
        for block in 0..kernel.blocks {
            for warp in 0..kernel.threads.div_ceil(LANES as u32) {
                program.start(0, WarpAt::new(block, warp, kernel.threads));
                follow(&mut program, width, u64::from(kernel.shared), &mut traffic);
            }
        }
    }
    (traffic, bases)
}

fn follow(program: &mut dyn Program, width: u64, shared: u64, traffic: &mut Traffic) {
    let mut tape = Tape::default();
    loop {
        tape.clear();
        let more = program.step(0, 0, &mut tape);
        for inst in &tape.insts {
            let lanes = inst.mask.count_ones() as usize;
            let from = inst.addresses as usize;
            let map = match inst.kind {
                InstKind::Load => &mut traffic.loads,
                InstKind::Store => &mut traffic.stores,
                InstKind::SharedLoad | InstKind::SharedStore => {
                    for offset in &tape.addresses[from..from + lanes] {
                        assert!(offset + u64::from(inst.width) <= shared, "beyond shared memory: {offset}");
                        assert!(offset.is_multiple_of(u64::from(inst.width)), "not aligned: {offset}");
                    }
                    continue;
                }
                _ => continue,
            };
            for address in &tape.addresses[from..from + lanes] {
                assert!(address.is_multiple_of(u64::from(inst.width)), "not aligned: {address}");
                // Numbers of rows are wider than elements.
                let step = width.min(u64::from(inst.width));
                for part in (0..u64::from(inst.width)).step_by(step as usize) {
                    *map.entry(address + part).or_default() += 1;
                }
            }
        }
        if !more {
            return;
        }
    }
}
