//! Reclaim units without a single invalid slot: policies that go by age or chance meet them.

use engine::Rng;
use ftl::page_map::Ftl;
use ftl::page_map::gc::VictimPolicy;
use ftl::page_map::space::Stream;
use proto::Lpn;
use ssd::Device;

const BLOCKS: u32 = 64;
const PAGES: u32 = 8;
const LOGICAL: u64 = 400;

/// One plane of small blocks that collects when one block is free.
fn device(policy: &VictimPolicy) -> Device {
    let hidden = 1.0 - LOGICAL as f64 / f64::from(BLOCKS * PAGES);
    let overrides = [
        "geometry.channels=1".to_owned(),
        "geometry.ways=1".into(),
        "geometry.planes=1".into(),
        format!("geometry.blocks={BLOCKS}"),
        format!("geometry.pages={PAGES}"),
        format!("ftl.over_provisioning={hidden}"),
        "ftl.gc.hard=1".into(),
        "ftl.gc.start=1".into(),
        "ftl.gc.stop=2".into(),
        format!("ftl.gc.victim={}", policy.name()),
    ]
    .map(|key| format!("flash.{key}"));
    let device = machine::load("d16", &overrides).and_then(|loaded| loaded.device(1)).expect("a device");
    assert_eq!(device.ftl.logical(), LOGICAL);
    device
}

fn write(ftl: &mut Ftl, unit: u64) -> bool {
    if ftl.make_room(0).is_err() {
        return false;
    }
    let Some(slot) = ftl.reserve(0, Stream::Host(0)) else { return false };
    ftl.fill(slot, Some(Lpn(unit)));
    ftl.program(slot);
    ftl.commit(Lpn(unit), slot);
    ftl.programmed(slot);
    true
}

#[test]
fn cold_data_never_stops_any_policy() {
    // The oldest blocks hold data that is never written again: they stay full for ever.
    for policy in VictimPolicy::all_defaults() {
        let ftl = &mut device(&policy).ftl;
        assert!((0..LOGICAL).all(|unit| write(ftl, unit)), "{}: the first fill", policy.name());
        let mut rng = Rng::stream(1, "test");
        assert!((0..20_000).all(|_| write(ftl, 350 + rng.below(50))), "{} stops", policy.name());
        assert_eq!(ftl.counters.host_commits, 20_000 + LOGICAL);
    }
}

#[test]
fn random_victims_include_full_ones() {
    // Victims drawn uniformly are as full as the drive: A = T / (T - U) at any block size (Van Houdt, SIGMETRICS
    // 2013). Passing over full blocks, of which there are many when blocks are small, would give a fifth less.
    let ftl = &mut device(&VictimPolicy::random).ftl;
    let mut rng = Rng::stream(1, "test");
    let mut turn = |ftl: &mut Ftl, turns: u64| (0..turns * LOGICAL).all(|_| write(ftl, rng.below(LOGICAL)));
    assert!((0..LOGICAL).all(|unit| write(ftl, unit)) && turn(ftl, 20));
    let before = ftl.counters;
    assert!(turn(ftl, 500));
    let since = ftl.counters.since(&before);
    let measured = 1.0 + since.moves as f64 / since.host_commits as f64;
    // One block is kept free, two are open; an open block adds what it holds already, half a block on average.
    let closed = f64::from((BLOCKS - 3) * PAGES);
    let [most, least] = [closed, closed + f64::from(PAGES)].map(|t| t / (t - LOGICAL as f64));
    assert!(measured > least * 0.98 && measured < most * 1.02, "{measured}, not {least} to {most}");
}
