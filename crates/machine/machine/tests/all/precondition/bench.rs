//! Devices, timed writes and statistics that the tests share.

use engine::{Digest, Rng, Time};
use ftl::page_map::{Ftl, FtlCounters};
use machine::{End, Loaded, Machine, Warmup};
use proto::{IoOp, IoRequest, Lpn};
use requests::inject::{HostCost, Injector, Next, Queues, Source};
use spec::precondition::{self, Report};
use ssd::Device;
use std::sync::atomic::AtomicBool;

/// D16 made small: 8 planes of 256 blocks of 64 units of 4 KiB.
pub(crate) const SMALL: [&str; 7] = [
    "flash.geometry.channels=4",
    "flash.geometry.ways=1",
    "flash.geometry.blocks=256",
    "flash.geometry.pages=64",
    "flash.ftl.over_provisioning=15%",
    "flash.ftl.gc.start=4",
    "flash.ftl.gc.stop=5",
];

/// A system: D16 with overrides.
pub(crate) fn system(overrides: &[&str]) -> Loaded {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    machine::load("d16", &overrides).unwrap_or_else(|fault| panic!("{fault}"))
}

/// The small device, with more overrides.
pub(crate) fn small(overrides: &[&str]) -> Loaded {
    system(&[&SMALL, overrides].concat())
}

/// A device in a state.
pub(crate) fn prepared(system: &Loaded, state: &str, seed: u64) -> (Device, Report) {
    let mut device = system.device(seed).unwrap_or_else(|fault| panic!("{fault}"));
    let state = precondition::parse(state).unwrap_or_else(|fault| panic!("{fault}"));
    let report = precondition::apply(&state, system.drive().expect("a drive").flash, &mut device.ftl, seed)
        .unwrap_or_else(|fault| panic!("{fault}"));
    (device, report)
}

/// Single-unit writes at random.
struct RandomWrites {
    rng: Rng,
    units: u64,
    unit_bytes: u64,
    left: u64,
    pace: Pace,
    next: Time,
}

/// When writes are issued.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// Number always in flight.
    Closed(u32),
    /// One in each such time.
    Open(Time),
}

impl Source for RandomWrites {
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, config::Diagnostic> {
        if self.left == 0 {
            return Ok(Next::Done);
        }
        match self.pace {
            Pace::Closed(depth) if outstanding >= depth => return Ok(Next::Blocked),
            Pace::Open(_) if now < self.next => return Ok(Next::At(self.next)),
            Pace::Closed(_) => {}
            Pace::Open(gap) => self.next += gap,
        }
        self.left -= 1;
        let offset = self.rng.below(self.units) * self.unit_bytes;
        let (op, bytes) = (IoOp::Write, self.unit_bytes);
        Ok(Next::Issue(IoRequest { at: now, op, offset, bytes, flow: 0, fua: false }))
    }
    fn completed(&mut self, _: Time, _: &IoRequest) {}
    fn flows(&self) -> Vec<String> {
        vec!["random".into()]
    }
}

/// Writes units `0..units` at random in time, `writes` of them: the machine afterwards, and what the FTL had counted
/// after each `every` of them.
pub(crate) fn write_in_time(
    device: Device,
    units: u64,
    (writes, every): (u64, u64),
    pace: Pace,
    seed: u64,
) -> (Machine, Vec<FtlCounters>) {
    let unit_bytes = u64::from(device.ftl.geo.shape.unit_bytes);
    let rng = Rng::stream(seed, "writes");
    let source = RandomWrites { rng, units, unit_bytes, left: writes, pace, next: Time::ZERO };
    let injector = Injector::new(vec![Box::new(source)], Queues::UNBOUNDED, HostCost::default());
    // A warm-up that never ends makes the machine look up every few events.
    let mut machine = Machine::new(device, injector, Some(Warmup::Requests(u64::MAX)));
    let mut marks = Vec::new();
    let end = machine.run(&AtomicBool::new(false), |machine| {
        if machine.injector.completed >= (marks.len() as u64 + 1) * every {
            marks.push(machine.device().ftl.counters);
        }
    });
    assert_eq!(end, End::Done);
    if marks.len() as u64 * every < writes {
        marks.push(machine.device().ftl.counters);
    }
    (machine, marks)
}

/// The naive reference: what the slots of the logical units must satisfy, `mapped` of which hold data.
pub(crate) fn check(ftl: &Ftl, mapped: u64) {
    let mut per_ru = vec![0; ftl.geo.ru_count as usize];
    let mut found = 0;
    for lpn in (0..ftl.logical()).map(Lpn) {
        if let Some(slot) = ftl.lookup(lpn) {
            assert!(ftl.is_valid(slot), "{lpn:?} at {slot:?}");
            assert!(ftl.array.is_programmed(slot, &ftl.geo), "{lpn:?} at {slot:?}");
            assert_eq!(ftl.lpn_at(slot), Some(lpn));
            per_ru[ftl.geo.ru_of_slot(slot) as usize] += 1;
            found += 1;
        }
    }
    assert_eq!((found, ftl.mapped()), (mapped, mapped));
    for (ru, count) in per_ru.into_iter().enumerate() {
        assert_eq!(ftl.valid_units(ru as u64), count, "valid count of reclaim unit {ru}");
        let mut cursor = 0;
        let slots = std::iter::from_fn(|| ftl.next_valid(ru as u64, &mut cursor)).count();
        assert_eq!(slots as u32, count, "valid slots of reclaim unit {ru}");
    }
}

/// The map as one number.
pub(crate) fn digest(ftl: &Ftl) -> u64 {
    let mut digest = Digest::default();
    (0..ftl.logical()).for_each(|lpn| digest.word(ftl.lookup(Lpn(lpn)).map_or(u64::MAX, |slot| slot.0)));
    digest.value()
}

/// The p-value of the hypothesis that two histograms were drawn from one distribution: Pearson's chi-square of a
/// two-row table. Neighbouring cells are pooled until each holds a tenth of all, because the reclaim units of a
/// group that is at its floor of valid units move from level to level together.
pub(crate) fn homogeneity(a: &[u64], b: &[u64]) -> f64 {
    let (total_a, total_b) = (a.iter().sum::<u64>() as f64, b.iter().sum::<u64>() as f64);
    let total = total_a + total_b;
    let mut pooled = vec![(0.0, 0.0)];
    for (x, y) in a.iter().zip(b) {
        let last = pooled.last_mut().expect("never empty");
        last.0 += *x as f64;
        last.1 += *y as f64;
        if last.0 + last.1 >= total / 10.0 {
            pooled.push((0.0, 0.0));
        }
    }
    // What is left at the end joins the cell before it.
    let rest = pooled.pop().expect("never empty");
    if let Some(last) = pooled.last_mut() {
        *last = (last.0 + rest.0, last.1 + rest.1);
    }
    let chi: f64 = pooled
        .iter()
        .map(|(x, y)| {
            let (of_a, of_b) = ((x + y) * total_a / total, (x + y) * total_b / total);
            (x - of_a).powi(2) / of_a + (y - of_b).powi(2) / of_b
        })
        .sum();
    theory::regularized_gamma_q((pooled.len() - 1) as f64 / 2.0, chi / 2.0)
}
