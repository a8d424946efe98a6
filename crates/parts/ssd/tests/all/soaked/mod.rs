//! Small drives of all kinds at work, checked against the invariants of every drive.

mod mutants;
mod power_cut;

use config::{
    StatePower,
    units::{Energy, Power, TransferRate},
};
use engine::{Digest, Rng, Time};
use nand::dies::{
    FlashEnergySpec,
    observe::{Observer, Tenure},
    op::{Class, OpKind},
    timing::Timing,
};
use net::energy::LinkEnergySpec;
use ssd::{
    device::{Device, ParityCounters, SnapshotFault},
    soak::{Combination, End, Host, Map, Memory, combinations, *},
    spec::{Built, FlashSpec, Programming, timing},
};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

// The long soak: `cargo xtask soak`.
//
// `SOAK_OPS` sets the least number of operations, ten million otherwise; `SOAK_SEED` the first seed; `SOAK_EACH` the
// operations of one combination with one seed; `SOAK_TIMES` by how much the tests below are longer.

#[test]
#[ignore = "ten million operations take minutes: `cargo xtask soak` runs it"]
fn ten_million_operations_keep_their_data() {
    let (wanted, mut seed) = (setting("SOAK_OPS", 10_000_000), setting("SOAK_SEED", 1));
    let each = setting("SOAK_EACH", 30_000);
    let (mut done, mut compared, mut bad) = (0, 0, 0);
    let mut digest = Digest::default();
    while done < wanted {
        for combination in ssd::soak::combinations(seed) {
            let outcome = ssd::soak::run(&combination, each, seed, true).expect("it can be built");
            done += outcome.operations;
            compared += outcome.units_checked;
            digest.word(outcome.digest);
            // The same without shadow, and the other way round with folding.
            let other = Combination { fold: !combination.fold, ..combination.clone() };
            let other = ssd::soak::run(&other, each, seed, false).expect("it can be built");
            let is_ok = outcome.is_ok() && (other.digest, other.moves) == (outcome.digest, outcome.moves);
            bad += u64::from(!is_ok);
            let verdict = if is_ok { "ok" } else { "FAILED" };
            println!("seed {seed} {verdict} {} operations: {}", outcome.operations, outcome.name);
            if !is_ok {
                println!("{outcome:#?}, other way folded: {other:#?}");
            }
        }
        seed += 1;
    }
    println!("{done} operations, {compared} units compared, {bad} runs failed");
    println!("digest {:016x}", digest.value());
    assert_eq!(bad, 0, "failed runs");
}

// A device that is saved and loaded continues like the original.

/// A host before a copy of its device, which has been loaded from a snapshot.
fn copied(host: &Host, combination: &Combination) -> Host {
    let mut bytes = Vec::new();
    host.device.save(&mut bytes).unwrap_or_else(|e| panic!("{combination}: {e}"));
    let mut copy = combination.build(99).expect("it can be built");
    let mut input = bytes.as_slice();
    copy.load(&mut input).unwrap_or_else(|e| panic!("{combination}: {e}"));
    assert!(input.is_empty(), "{combination}");
    let mut again = Vec::new();
    copy.save(&mut again).unwrap_or_else(|e| panic!("{combination}: {e}"));
    assert!(bytes == again, "{combination}: what was loaded is saved in other words");
    host.before(copy)
}

#[test]
fn a_copy_goes_on_as_the_original_does() {
    for combination in &combinations(7) {
        let device = combination.build(7).expect("it can be built");
        let mut host = Host::new(device, 7, combination.depth);
        for count in [1_000, 2_000].map(operations) {
            // The copy is built with another seed: what it draws is part of the state.
            let mut copy = copied(&host, combination);
            // The contents of a map cache are not taken for granted by a shadow.
            if combination.map == Map::Table {
                copy.device.attach_shadow();
            }
            let ends = (host.drive(count), copy.drive(count));
            assert_eq!(ends, (End::Done, End::Done), "{combination}");
            assert_eq!(copy.digest(), host.digest(), "{combination}");
            assert_eq!(copy.failed, [], "{combination}");
            let counted = |h: &Host| (h.device.ftl.counters, h.device.backend.counters.clone());
            assert_eq!(counted(&copy), counted(&host), "{combination}");
            host = copy;
        }
    }
}

#[test]
fn a_snapshot_that_does_not_fit_is_refused() {
    let all = combinations(7);
    let device = |c: &Combination| c.build(7).expect("it can be built");
    let first = device(&all[0]);
    let mut bytes = Vec::new();
    first.save(&mut bytes).expect("it is idle");
    let other = all.iter().map(device).find(|d| d.capacity() != first.capacity());
    let mut other = other.expect("capacities differ");
    assert_eq!(other.load(&mut bytes.as_slice()), Err(SnapshotFault::OtherDevice));
    for cut in [3, bytes.len() / 2, bytes.len() - 1] {
        let result = device(&all[0]).load(&mut &bytes[..cut]);
        assert_eq!(result, Err(SnapshotFault::Damaged), "cut at {cut} of {}", bytes.len());
    }
}

// The soak in small.

#[test]
fn every_combination_keeps_its_data() {
    let report = soak(operations(5_000), 1);
    for outcome in &report.outcomes {
        assert!(outcome.is_ok(), "{outcome:#?}");
        assert!(outcome.units_checked > 500, "{outcome:#?}");
    }
    // The soak is worth nothing if nothing races.
    let sum = |f: &dyn Fn(&Outcome) -> u64| report.outcomes.iter().map(f).sum::<u64>();
    assert!(sum(&|o| o.moves) > 20_000);
    assert!(sum(&|o| o.moves_dropped) > 200);
    assert!(sum(&|o| o.merges_dropped) > 200);
    assert!(sum(&|o| o.register_hits) > 2_000);
    assert!(sum(&|o| o.joined_reads) > 2_000);
    assert!((0..2).all(|n| sum(&|o| o.retried_reads[n]) > 200));
    assert!(sum(&|o| o.ahead.used) > 200);
    assert!(sum(&|o| o.ahead.met) > 200);
    assert!(sum(&|o| o.ahead.dropped) > 200);
    assert!((0..3).all(|pace| sum(&|o| o.evicted[pace]) > 200));
    assert!(sum(&|o| o.skipped) > 200);
}

/// Wherever planes can read on their own, they lose nothing, and folding leaves them as they are.
#[test]
fn planes_that_read_independently_keep_their_data() {
    let mut all = combinations(1);
    all.retain(|c| !matches!(c.scheduler, nand::dies::sched::Scheduling::in_order));
    assert!(all.len() > 20);
    for combination in &mut all {
        combination.independent_reads = true;
        let [folded, whole] = [true, false].map(|fold| {
            combination.fold = fold;
            let outcome = run(combination, operations(1_500), 1, true).expect("it can be built");
            assert!(outcome.is_ok() && outcome.units_checked > 100, "{outcome:#?}");
            outcome.digest
        });
        assert_eq!(folded, whole, "{combination}");
    }
}

#[test]
fn the_shadow_changes_nothing() {
    for combination in &combinations(2) {
        let run = |shadow| run(combination, operations(1_000), 2, shadow).expect("it can be built").digest;
        assert_eq!(run(true), run(false), "{combination}");
    }
}

#[test]
fn folding_changes_nothing() {
    for combination in combinations(3).iter().chain(&combinations(4)) {
        let run = |fold| {
            let folded = Combination { fold, ..combination.clone() };
            run(&folded, operations(1_000), 3, false).expect("it can be built").digest
        };
        assert_eq!(run(true), run(false), "{combination}");
    }
}

/// Counts the commands that it is shown.
struct Counts(Rc<Cell<u64>>);

impl Observer for Counts {
    fn ended(&mut self, _: &Tenure) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn observers_change_nothing() {
    for combination in &combinations(5) {
        let seen = Rc::new(Cell::new(0));
        let run = |observer: Option<Box<dyn Observer>>| {
            let mut device = combination.build(5).expect("it can be built");
            device.backend.observer = observer;
            let mut host = Host::new(device, 5, combination.depth);
            (host.drive(2_000), host.digest(), host.now())
        };
        let alone = run(None);
        assert_eq!(run(Some(Box::new(Counts(seen.clone())))), alone, "{combination}");
        assert!(seen.get() > 0, "{combination}: the observer has seen nothing");
    }
}

// Devices of all kinds with superblock parity: two or four of their dies protect each other.

/// The combinations that can have it, each with a set of two or of four dies, half of them with errors.
fn all(seed: u64) -> Vec<Combination> {
    let mut all = combinations(seed);
    all.retain(|c| !matches!(c.memory, Memory::Registers | Memory::ProtectedRegisters));
    all.retain(|c| c.pages == ftl::page_map::pages::PageOrder::in_order);
    // Blocks of three program units fill no set.
    all.retain(|c| c.map_unit <= c.page);
    let with = |(n, c): (usize, Combination)| Combination {
        parity: Some([1, 3][n % 2]),
        copy_back: false,
        errors: n / 2 % 2 == 0,
        ..c
    };
    all.into_iter().enumerate().map(with).collect()
}

/// Program units of data that have been programmed.
fn programs_of_data(device: &Device) -> u64 {
    let done = &device.backend.counters.done;
    let all = [Class::HostProgram, Class::MapProgram, Class::GcProgram].map(|class| done[class as usize]);
    all.iter().sum::<u64>() - device.stats.parity.programs
}

#[test]
fn devices_with_parity_keep_their_data() {
    let mut all_of_it = ParityCounters::default();
    for seed in [1, 2] {
        for combination in &all(seed) {
            let mut device = combination.build(seed).unwrap_or_else(|e| panic!("{combination}: {}", e.what));
            device.attach_shadow();
            let mut host = Host::new(device, seed, combination.depth);
            let end = host.drive(operations(6_000));
            assert_eq!((end, &host.failed[..]), (End::Done, &[][..]), "{combination}");
            let seen = host.device.parity().expect("there is parity");
            let data = u64::from(combination.parity.expect("it was given"));
            // Blocks that are or were open may be in the midst of a turn: up to ten streams at the beginning and at the end.
            let open = u64::from(host.device.ftl.geo.plane_count) * 20;
            let of_data = programs_of_data(&host.device);
            assert!(
                (seen.programs * data).abs_diff(of_data) <= open * data,
                "{combination} {seen:?} {of_data}"
            );
            all_of_it.programs += seen.programs;
            all_of_it.rebuilt += seen.rebuilt;
            all_of_it.lost += seen.lost;
        }
    }
    let ParityCounters { programs, rebuilt, lost } = all_of_it;
    assert!(programs > 10_000 && rebuilt > 1_000 && lost > 100, "{all_of_it:?}");
}

/// The shadow and folded stages change nothing.
#[test]
fn observing_parity_changes_nothing() {
    for combination in &all(3) {
        let run = |shadow: bool, fold: bool| {
            let combination = Combination { fold, ..combination.clone() };
            let mut device = combination.build(3).expect("it can be built");
            if shadow {
                device.attach_shadow();
            }
            let mut host = Host::new(device, 3, combination.depth);
            (host.drive(1_500), host.digest())
        };
        let first = run(false, true);
        assert_eq!((run(true, true), run(false, false)), (first, first), "{combination}");
    }
}

#[test]
fn a_copy_of_a_device_with_parity_goes_on_as_the_original_does() {
    for combination in &all(4) {
        let mut host = Host::new(combination.build(4).expect("it can be built"), 4, combination.depth);
        host.drive(2_000);
        let mut bytes = Vec::new();
        host.device.save(&mut bytes).expect("it is idle");
        let mut copy = combination.build(4).expect("it can be built");
        copy.load(&mut bytes.as_slice()).expect("it fits");
        let mut copy = host.before(copy);
        let ends = (host.drive(2_000), copy.drive(2_000));
        assert_eq!(ends, (End::Done, End::Done), "{combination}");
        assert_eq!(
            (copy.digest(), copy.device.parity()),
            (host.digest(), host.device.parity()),
            "{combination}"
        );
    }
}

#[test]
fn data_beside_parity_survives_any_cut() {
    let mut rng = Rng::stream(12, "test");
    for combination in all(6).iter().filter(|c| c.map == Map::Table) {
        let mut found = combination.build(6).expect("it can be built");
        found.attach_shadow();
        found.record_stamps().expect("it is idle");
        for life in 0..4 {
            found.watch_durability();
            let mut host = Host::new(found, 6 + life, combination.depth);
            assert_eq!(host.run_events(2_000 + rng.below(6_000)), End::Done, "{combination}");
            let now = host.now();
            let (durable, shadow) = host.device.cut_power(now).expect("it keeps stamps");
            found = combination.build_empty(6).expect("it can be built");
            let (_, survivors) = found.recover_by(durable, shadow, |a, b| a > b).expect("it fits");
            assert_eq!(survivors.expect("the shadow has watched").lost, None, "{combination}, life {life}");
            let failed: Vec<_> = found.checks(Time::ZERO).into_iter().filter(|c| !c.ok).collect();
            assert_eq!(failed, [], "{combination}, life {life}");
        }
    }
}

// Energy of media, compared with an observer's record of every command.

const READ: u64 = 1_500_000_000_003;

const PROGRAM: u64 = 90_000_000_000_007;

const ERASE: u64 = 400_000_000_000_011;

const BYTE: u64 = 41_000_013;

const POWERS: [u64; 4] = [1_003, 21_017, 900_001, 3_100_007];

fn spec(combination: &Combination) -> FlashSpec {
    let power =
        |idle: usize| StatePower { idle: Power::new(POWERS[idle]), busy: Power::new(POWERS[idle + 1]) };
    let mut spec = combination.spec();
    // An observer only sees the last transfer of a command.
    spec.cell.errors = None;
    // A byte in a nanosecond.
    spec.channel.rate = TransferRate::new(1_000_000_000);
    spec.energy = Some(FlashEnergySpec {
        read: vec![Energy::new(READ)],
        program: vec![Energy::new(PROGRAM)],
        erase: Energy::new(ERASE),
        transfer: Energy::new(BYTE),
        die: power(0),
        controller: power(2),
        link: LinkEnergySpec { transfer: Energy::new(0), on: Power::new(1_000) },
    });
    spec
}

/// Planes that have programmed, planes that have erased, and bytes on channels.
#[derive(Default)]
struct Noted {
    programs: u64,
    erases: u64,
    bytes: u64,
}

struct Notes {
    timing: Timing,
    has_registers: bool,
    noted: Rc<RefCell<Noted>>,
}

impl Observer for Notes {
    fn ended(&mut self, tenure: &Tenure) {
        let mut noted = self.noted.borrow_mut();
        let (planes, passes) = (u64::from(tenure.planes), u64::from(self.timing.passes));
        let bytes = |held: Time, overhead: Time| (held - overhead).ps() / 1_000;
        match tenure.kind {
            OpKind::Read if tenure.moved == tenure.ended => {}
            OpKind::Read => {
                noted.bytes += bytes(tenure.ended - tenure.moved, self.timing.data_out.times(planes));
            }
            OpKind::Program => {
                let command = (self.timing.program_command + self.timing.data_in).times(planes * passes);
                noted.programs += planes;
                // What registers hold has come before, by a transfer of its own.
                noted.bytes +=
                    if self.has_registers { 0 } else { bytes(tenure.sent - tenure.started, command) };
            }
            OpKind::CopyBack => noted.programs += planes,
            OpKind::Erase => noted.erases += planes,
        }
    }
}

#[test]
fn media_spend_what_somebody_notes_who_looks_on() {
    for combination in combinations(5).iter().filter(|combination| !combination.tight) {
        let spec = spec(combination);
        let built = Built { seed: 5, name: "soak".into(), fold: combination.fold };
        let mut device =
            combination.filled(spec.build(&built).expect("it can be built"), 5).expect("it fits");
        let timing = timing(&spec.cell, &spec.channel, &device.ftl.geo, &built).expect("times by type");
        let noted = Rc::new(RefCell::new(Noted::default()));
        let has_registers = matches!(combination.memory, Memory::Registers | Memory::ProtectedRegisters);
        let notes = Notes { timing: timing.clone(), has_registers, noted: Rc::clone(&noted) };
        device.backend.observer = Some(Box::new(notes));
        let mut host = Host::new(device, 5, combination.depth);
        assert_eq!((host.drive(2_000), host.failed.as_slice()), (End::Done, &[][..]), "{combination}");

        let (now, device) = (host.now(), &host.device);
        let energy = device.energy(now).expect("the spec says what things cost");
        assert!(energy.conserves(), "{combination}");
        let counters = &device.backend.counters;
        let (program_pages, unit_pages) = (u64::from(timing.program_pages), u64::from(timing.pages_per_unit));
        let pages = counters.senses * unit_pages + counters.copy_backs * program_pages;
        assert_eq!(energy.of("read"), u128::from(pages * READ), "{combination}: {pages} pages read");
        let each = if spec.cell.programming == Programming::page { program_pages } else { 1 };
        let noted = noted.borrow();
        let of = |count: u64, energy: u64| u128::from(count) * u128::from(energy);
        assert_eq!(energy.of("program"), of(noted.programs * each, PROGRAM), "{combination}");
        assert_eq!(energy.of("erase"), of(noted.erases, ERASE), "{combination}");
        let transfers = energy.of("channel transfer");
        let least = of(noted.bytes, BYTE);
        assert!(if has_registers { transfers > least } else { transfers == least }, "{combination}");
        // Each die is idle or at work all the time, and so are the controllers.
        let dies = device.backend.die_busy(now);
        let busy: u64 = dies.iter().map(|time| time.ps()).sum();
        assert_eq!(energy.of("die busy"), of(busy, POWERS[1]), "{combination}");
        assert_eq!(
            energy.of("die idle"),
            of(dies.len() as u64 * now.ps() - busy, POWERS[0]),
            "{combination}"
        );
        let (idle, works) = (energy.of("controller idle"), energy.of("controller busy"));
        let time = idle / u128::from(POWERS[2]) + works / u128::from(POWERS[3]);
        assert_eq!(time, now.ps().into(), "{combination}");
        assert_eq!(energy.of("link on"), of(now.ps(), 1_000), "{combination}");
    }
}

/// Metering energy changes nothing else.
#[test]
fn energy_changes_no_other_result() {
    for combination in &combinations(6)[..4] {
        let with = |energy: bool| {
            let mut spec = spec(combination);
            spec.energy = spec.energy.filter(|_| energy);
            let built = Built { seed: 6, name: "soak".into(), fold: combination.fold };
            let device =
                spec.build(&built).and_then(|device| combination.filled(device, 6)).expect("it fits");
            let mut host = Host::new(device, 6, combination.depth);
            assert_eq!(host.drive(1_000), End::Done);
            assert_eq!(host.device.energy(host.now()).is_some(), energy);
            (host.digest(), host.device.backend.counters.clone())
        };
        assert_eq!(with(false), with(true), "{combination}");
    }
}
