//! Power that programs and erases of all dies share: rates by formula, refused specs, and devices of all kinds with a small budget.

use crate::bench::{Bench, DIES, UNITS, close, combination};
use config::units::{Duration, Power};
use engine::Time;
use nand::dies::sched::Scheduling;
use nand::dies::{
    observe::{Observer, Tenure},
    op::{Class, OpKind},
};
use proto::IoOp;
use ssd::{
    soak::{Combination, End, Host, combinations},
    spec::{Built, FlashSpec, PowerBudgetSpec},
};
use std::{cell::RefCell, rc::Rc};

/// Time that makes the time of links and channels negligible.
const PROGRAM: Time = Time::from_ms(100);

fn spec(milliwatts: [u64; 3]) -> FlashSpec {
    let mut spec = combination().spec();
    spec.cell.program = vec![Duration::new(PROGRAM); 2];
    let [limit, program, erase] = milliwatts.map(|power| Power::new(1_000 * power));
    spec.die.power = Some(PowerBudgetSpec { limit, program, erase });
    spec
}

/// As many dies program at once as there is power for.
#[test]
fn writes_come_at_the_rate_of_the_dies_that_may_program() {
    for (limit, dies) in [(10, 1), (19, 1), (20, 2), (39, 3), (40, 4), (400, 4)] {
        let mut bench = Bench::of(&spec([limit, 10, 10]));
        let time = bench.run(IoOp::Write, 0..48);
        assert!(close(time, PROGRAM.times(48 / dies)), "{limit}: {time:?}");
        bench.rest();
        assert_eq!(bench.programs(), [48, 0]);
        let waited = bench.device.backend.counters.power_waits;
        assert_eq!(waited == 0, dies == DIES, "{limit}: {waited}");
    }
}

/// Reads take no power: of one read at each die, only the one whose die programs waits.
#[test]
fn reads_do_not_wait_for_power() {
    let mut bench = Bench::of(&spec([10, 10, 10]));
    bench.device.ftl.assume_sequential(UNITS * 64);
    bench.device.attach_shadow();
    (8..16).for_each(|page| bench.submit(IoOp::Write, page));
    (0..DIES).for_each(|page| bench.submit(IoOp::Read, page));
    while bench.cx.queue.now() < PROGRAM
        && let Some(event) = bench.cx.queue.pop()
    {
        bench.device.handle(event, &mut bench.cx);
    }
    let answered = bench.cx.sent.drain(..).count() as u64;
    assert!(answered >= DIES - 1, "{answered}");
    let reads = bench.device.backend.counters.done[Class::HostRead as usize];
    assert_eq!(reads, DIES - 1);
    bench.rest();
}

fn refused(milliwatts: [u64; 3], change: fn(&mut FlashSpec)) -> String {
    let mut spec = spec(milliwatts);
    change(&mut spec);
    let built = Built { seed: 1, name: "budget".into(), fold: true };
    spec.build(&built).err().map(|fault| fault.key).unwrap_or_default()
}

#[test]
fn a_budget_under_which_nothing_could_begin_is_refused() {
    let nothing = |_: &mut FlashSpec| {};
    assert_eq!(refused([20, 10, 20], nothing), "");
    assert_eq!(refused([19, 10, 20], nothing), "die.power.limit");
    assert_eq!(refused([19, 20, 10], nothing), "die.power.limit");
    assert_eq!(refused([20, 0, 10], nothing), "die.power.program");
    assert_eq!(refused([20, 10, 0], nothing), "die.power.erase");
    assert_eq!(refused([20, 10, 10], |spec| spec.die.scheduler = Scheduling::in_order), "die.power");
}

// Devices of all kinds with next to no power for programs and erases.

const PROGRAM_POWER: u64 = 30_000;
const ERASE_POWER: u64 = 20_000;

/// Beginnings and ends of programs and erases, and what each takes.
type Noted = Rc<RefCell<Vec<(Time, Time, u64)>>>;

struct Notes(Noted);

impl Observer for Notes {
    fn ended(&mut self, tenure: &Tenure) {
        let power = match tenure.kind {
            OpKind::Read => return,
            OpKind::Program | OpKind::CopyBack => PROGRAM_POWER,
            OpKind::Erase => ERASE_POWER,
        };
        self.0.borrow_mut().push((tenure.started, tenure.ended, power));
    }
}

/// Maximum power taken at once.
fn most(noted: &[(Time, Time, u64)]) -> u64 {
    // What ends at a time has ended before what begins then.
    let mut steps: Vec<(Time, i64)> = noted
        .iter()
        .flat_map(|(from, to, power)| [(*from, *power as i64), (*to, -(*power as i64))])
        .collect();
    steps.sort_unstable();
    let levels = steps.iter().scan(0, |level, (_, step)| {
        *level += step;
        Some(*level)
    });
    levels.max().unwrap_or(0) as u64
}

/// Maximum power of a combination's device with a budget, and the time at which its host was done.
fn run(combination: &Combination, limit: Option<u64>) -> (u64, Time, u64) {
    let mut spec = combination.spec();
    spec.die.power = limit.map(|limit| PowerBudgetSpec {
        limit: Power::new(limit),
        program: Power::new(PROGRAM_POWER),
        erase: Power::new(ERASE_POWER),
    });
    let built = Built { seed: 5, name: "soak".into(), fold: combination.fold };
    let device = spec.build(&built).unwrap_or_else(|e| panic!("{combination}: {}", e.what));
    let mut device = combination.filled(device, 5).expect("it fits");
    let noted = Noted::default();
    device.backend.observer = Some(Box::new(Notes(Rc::clone(&noted))));
    device.attach_shadow();
    let mut host = Host::new(device, 5, combination.depth);
    assert_eq!((host.drive(1_500), host.failed.as_slice()), (End::Done, &[][..]), "{combination} {limit:?}");
    let waits = host.device.backend.counters.power_waits;
    let most = most(&noted.borrow());
    (most, host.now(), waits)
}

#[test]
fn no_more_is_taken_than_there_is_and_nothing_waits_for_ever() {
    let (mut slower, mut waits, mut all) = (0, 0, 0);
    for (n, combination) in combinations(7).iter().enumerate() {
        if matches!(combination.scheduler, Scheduling::in_order) {
            continue;
        }
        let limit = [PROGRAM_POWER, PROGRAM_POWER + ERASE_POWER, 2 * PROGRAM_POWER][n % 3];
        let (most, time, waited) = run(combination, Some(limit));
        assert!(most <= limit, "{combination}: {most} of {limit}");
        let (without, free, none) = run(combination, None);
        assert_eq!(none, 0);
        if without <= limit {
            assert_eq!(time, free, "{combination}: a limit that is never reached changes nothing");
        }
        slower += u32::from(time > free);
        waits += waited;
        all += 1;
    }
    assert!(slower > all / 2 && waits > 1_000, "{slower} of {all} are slower, {waits} waits");
}
