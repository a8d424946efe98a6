//! What a soak does.

use super::super::spec;
use crate::cache::replace::ReplacementPolicy;
use crate::l2::prefetch::{Prefetching, dynamic, fixed, predicted};
use crate::l2::{L2Spec, WritePolicy};
use config::units::Bytes;
use engine::Time;
use proptest::prelude::*;
use proto::memory::{Absent, Access, AccessKind, LINE, PAGE};

/// Applications.
pub(super) const APPS: u8 = 2;
/// Pages, and lines of them, that are accessed: few, so that accesses meet.
const PAGES: u64 = 6;
const LINES: u64 = 4;

/// The application that owns an address.
pub(super) fn app_of(address: u64) -> u8 {
    (address / PAGE % u64::from(APPS)) as u8
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Access(Access),
    Park(u64, u64),
    Purge(u8),
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) spec: L2Spec,
    pub(super) seed: u64,
    /// Memory takes less than twice this many ns.
    pub(super) slowest: u64,
    pub(super) actions: Vec<(u64, Action)>,
}

fn access() -> impl Strategy<Value = Action> {
    let kind = prop_oneof![
        3 => Just((AccessKind::Read, 128)),
        1 => Just((AccessKind::Own, 128)),
        2 => Just((AccessKind::Write, 128)),
        2 => Just((AccessKind::Write, 32)),
        2 => Just((AccessKind::Atomic, 4)),
    ];
    let absent = prop_oneof![2 => Just(Absent::Wait), 1 => Just(Absent::Signal)];
    (kind, 0..PAGES, 0..LINES, 0..6u16, 0..3u32, absent).prop_map(
        |((kind, bytes), page, line, warp, pc, absent)| {
            let address = page * PAGE + line * LINE;
            let app = app_of(address);
            Action::Access(Access {
                tag: 0,
                kind,
                address,
                bytes,
                app,
                port: 0,
                warp,
                pc,
                absent,
                since: Time::ZERO,
            })
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        30 => access(),
        4 => (0..PAGES, 1..1u64 << LINES).prop_map(|(page, lines)| Action::Park(page, lines)),
        1 => (0..APPS).prop_map(Action::Purge),
    ]
}

fn prefetching() -> impl Strategy<Value = Prefetching> {
    let chunk = prop_oneof![Just(256u64), Just(1024), Just(4096)].prop_map(Bytes::new);
    chunk.prop_flat_map(|chunk| {
        prop_oneof![
            Just(Prefetching::none),
            Just(Prefetching::fixed(fixed::Params { chunk })),
            Just(Prefetching::predicted(predicted::Params { entries: 8, cutoff: 1, chunk })),
            Just(Prefetching::dynamic(dynamic::Params {
                entries: 8,
                cutoff: 1,
                window: 2,
                ..dynamic::Params::default()
            })),
        ]
    })
}

fn specs() -> impl Strategy<Value = L2Spec> {
    let writes = prop_oneof![Just(WritePolicy::write_back), Just(WritePolicy::read_only)];
    let replacement = (0..ReplacementPolicy::all_defaults().len())
        .prop_map(|n| ReplacementPolicy::all_defaults().swap_remove(n));
    let counts = (1..4u16, 1..5u32, 1..5u32, 1..5u32, 1..4u32);
    let pages = prop_oneof![Just(0u64), 1..3u64];
    (writes, replacement, prefetching(), counts, pages, any::<bool>()).prop_map(
        |(writes, replacement, prefetch, (banks, ways, registers, merges, write_slots), pages, small)| {
            let parked = Bytes::new(pages * PAGE * u64::from(banks));
            let plain = pages == 0 && prefetch == Prefetching::none;
            L2Spec {
                banks,
                // Four sets: prefetched lines of a page push each other out.
                sets: if pages > 0 { 32 } else { 4 },
                ways: if pages > 0 { ways.max(pages as u32 + 1) } else { ways },
                registers,
                merges,
                write_slots,
                interleave: Bytes::new(if plain && small { 256 } else { PAGE }),
                replacement,
                prefetch,
                parked,
                ..spec(writes)
            }
        },
    )
}

pub(super) fn cases() -> impl Strategy<Value = Case> {
    let actions = prop::collection::vec((0..20u64, action()), 1..150);
    (specs(), any::<u64>(), prop_oneof![Just(5u64), Just(100)], actions)
        .prop_map(|(spec, seed, slowest, actions)| Case { spec, seed, slowest, actions })
}
