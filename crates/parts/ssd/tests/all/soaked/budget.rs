//! Devices of all kinds with next to no power for programs and erases, against what somebody notes who looks on.

use config::units::Power;
use engine::Time;
use nand::dies::observe::{Observer, Tenure};
use nand::dies::op::OpKind;
use nand::dies::sched::Scheduling;
use ssd::soak::{Combination, End, Host, combinations};
use ssd::spec::{Built, PowerBudgetSpec};
use std::cell::RefCell;
use std::rc::Rc;

const PROGRAM: u64 = 30_000;
const ERASE: u64 = 20_000;

/// Beginnings and ends of programs and erases, and what each takes.
type Noted = Rc<RefCell<Vec<(Time, Time, u64)>>>;

struct Notes(Noted);

impl Observer for Notes {
    fn ended(&mut self, tenure: &Tenure) {
        let power = match tenure.kind {
            OpKind::Read => return,
            OpKind::Program | OpKind::CopyBack => PROGRAM,
            OpKind::Erase => ERASE,
        };
        self.0.borrow_mut().push((tenure.started, tenure.ended, power));
    }
}

/// The most that was taken at once.
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

/// What a device of a combination has taken at most with a budget, and when its host was done.
fn run(combination: &Combination, limit: Option<u64>) -> (u64, Time, u64) {
    let mut spec = combination.spec();
    spec.die.power = limit.map(|limit| PowerBudgetSpec {
        limit: Power::new(limit),
        program: Power::new(PROGRAM),
        erase: Power::new(ERASE),
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
        let limit = [PROGRAM, PROGRAM + ERASE, 2 * PROGRAM][n % 3];
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
