//! Random programs: everything ends, everything is answered, and what was on the tapes has been counted.

use super::*;
use proptest::prelude::*;

/// Draws a warp's instructions from its numbers alone. Warps of a block have as many barriers.
pub(super) fn program(seed: u64, app: u64, block: u32, warp: u32) -> Vec<Vec<Step>> {
    let mut rng = engine::Rng::stream(seed, &format!("{app}/{block}/{warp}"));
    let barriers = engine::Rng::stream(seed, &format!("{app}/{block}")).below(3);
    let mut pieces = Vec::new();
    for section in 0..=barriers {
        let mut piece = Vec::new();
        for _ in 0..rng.below(8) {
            piece.push(instruction(&mut rng));
            if rng.below(3) == 0 {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        if section < barriers {
            piece.push(barrier());
        }
        if !piece.is_empty() {
            pieces.push(piece);
        }
    }
    pieces
}

fn instruction(rng: &mut engine::Rng) -> Step {
    let kinds = [InstKind::Alu, InstKind::Sfu, InstKind::Load, InstKind::Store, InstKind::Atomic];
    let more = [InstKind::SharedLoad, InstKind::SharedStore, InstKind::Load];
    let kind = kinds.into_iter().chain(more).nth(rng.below(8) as usize).unwrap_or(InstKind::Alu);
    let mut mask = rng.next_u64() as u32;
    if rng.below(10) == 0 {
        mask = 0;
    }
    let width = [1, 2, 4, 8, 16][rng.below(5) as usize];
    let base = rng.below(200) * 4096;
    let spread = [1, 64, 4096, 100_000][rng.below(4) as usize];
    let lanes = mask.count_ones();
    let arithmetic = matches!(kind, InstKind::Alu | InstKind::Sfu);
    let addresses: Vec<u64> = match arithmetic {
        true => vec![],
        false => (0..lanes).map(|_| base + rng.below(spread)).collect(),
    };
    let register = |rng: &mut engine::Rng| rng.below(6) as u8;
    let inst = Inst {
        kind,
        width: if arithmetic { 0 } else { width },
        to: register(rng),
        from: [register(rng), register(rng), register(rng)],
        count: if arithmetic { 1 + rng.below(4) as u16 } else { 1 },
        pc: 1 + rng.below(50) as u32,
        mask,
        addresses: 0,
    };
    Step { inst, addresses }
}

pub(super) fn spec(seed: u64) -> GpuSpec {
    let mut rng = engine::Rng::stream(seed, "spec");
    let mut pick = |from: &[u32]| from[rng.below(from.len() as u64) as usize];
    let mut spec = small();
    spec.sms = pick(&[1, 2, 5]) as u16;
    spec.clock = Frequency::new([1_000_000_000, 1_200_000_000, 700_000_000][pick(&[0, 1, 2]) as usize]);
    spec.issue = pick(&[1, 2]) as u8;
    let schedulers = WarpScheduling::all_defaults();
    spec.scheduler = schedulers[pick(&[0, 1, 2]) as usize].clone();
    if let WarpScheduling::two_level(params) = &mut spec.scheduler {
        params.active = pick(&[1, 2, 8]) as u8;
    }
    spec.resident.warps = pick(&[3, 8, 128]) as u8;
    spec.resident.blocks = pick(&[1, 3, 8]) as u16;
    spec.load_store.queue = pick(&[1, 7, 64]);
    spec.load_store.stores = pick(&[1, 3, 40]);
    spec.l1.miss_registers = pick(&[1, 4, 64]) as u16;
    spec.l1.merges = pick(&[0, 1, 8]) as u16;
    spec.l1.latency = pick(&[1, 20]) as u16;
    spec.tlb.misses = pick(&[1, 2, 16]) as u16;
    spec.tlb.entries = pick(&[1, 8, 64]);
    spec.tlb.ways = 1;
    spec
}

/// Contents of the tapes.
fn expected(steps: impl Iterator<Item = Step>) -> Counters {
    let mut sum = Counters::default();
    for Step { inst, .. } in steps {
        sum.warp_instructions += u64::from(inst.count);
        sum.thread_instructions += u64::from(inst.count) * u64::from(inst.mask.count_ones());
        match inst.kind {
            InstKind::Load => sum.loads += 1,
            InstKind::Store => sum.stores += 1,
            InstKind::Atomic => sum.atomics += 1,
            InstKind::SharedLoad | InstKind::SharedStore => sum.shared += 1,
            InstKind::Barrier => sum.barriers += 1,
            InstKind::Alu | InstKind::Sfu => {}
        }
    }
    sum
}

fn world(seed: u64, apps: u64, blocks: u32, warps: u32) -> World {
    let kernel = |app, number: u64| {
        let seed = seed ^ number << 32;
        let launch = Launch { number: 0, blocks, threads: 32 * warps, registers: 20, shared: 1000 };
        Kernel { launch, program: Box::new(move |block, warp| program(seed, app, block, warp)) }
    };
    let kernels = (0..apps).map(|app| vec![kernel(app, 0), kernel(app, 1)]).collect();
    let mut world = World::new(&spec(seed), kernels);
    // Not a number of cycles of every clock.
    world.latency = Time::from_ps(40_001);
    let mut world = world.begin();
    world.run();
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn everything_ends_and_is_counted(seed: u64, apps in 1u64..4, blocks in 1u32..6, warps in 1u32..4) {
        let world = world(seed, apps, blocks, warps);
        world.check_end();
        prop_assert_eq!(world.script.starts.len() as u64, 2 * apps * u64::from(blocks * warps));
        for kernel in &world.gpu.stats.kernels {
            let seed = seed ^ u64::from(kernel.number) << 32;
            let tapes = (0..blocks).flat_map(|b| (0..warps).map(move |w| (b, w)));
            let steps = tapes.flat_map(|(b, w)| program(seed, kernel.app.into(), b, w)).flatten();
            let (tape, got) = (expected(steps), kernel.counters);
            let only_issue = Counters {
                lines: 0, bank_conflicts: 0, l1_hits: 0, l1_misses: 0, l1_merges: 0, writes_sent: 0,
                atomics_sent: 0, tlb_hits: 0, tlb_misses: 0, translations_sent: 0, ..got
            };
            prop_assert_eq!(only_issue, tape);
            let taken = got.l1_hits + got.l1_misses + got.l1_merges + got.writes_sent + got.atomics_sent;
            prop_assert_eq!(got.lines, taken);
        }
        let sum = (0..apps as u8).fold(Counters::default(), |mut sum, app| {
            sum += &world.gpu.stats.app(app);
            sum
        });
        prop_assert_eq!(world.accesses().len() as u64, sum.l1_misses + sum.writes_sent + sum.atomics_sent);
        let requests = world.gpu.stats.reads.count() + world.gpu.stats.writes.count();
        prop_assert_eq!(requests, sum.lines);
        let busy: u64 = world.gpu.stats.sms.iter().map(|sm| sm.busy).sum();
        prop_assert!(busy <= sum.warp_instructions);
    }

    #[test]
    fn nothing_but_the_inputs_decides(seed: u64) {
        let (one, two) = (world(seed, 2, 3, 2), world(seed, 2, 3, 2));
        prop_assert_eq!(one.outside.sent, two.outside.sent);
        prop_assert_eq!(one.script.steps, two.script.steps);
    }
}
