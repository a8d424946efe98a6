//! Power that programs and erases of all dies share: rates by formula, and what a spec may say.

use crate::bench::{Bench, DIES, UNITS, close, combination};
use config::units::{Duration, Power};
use engine::Time;
use nand::dies::op::Class;
use nand::dies::sched::Scheduling;
use proto::IoOp;
use ssd::spec::{Built, FlashSpec, PowerBudgetSpec};

/// A time beside which links and channels take next to nothing.
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

/// Reads take no power: of one at each die only the one waits whose die programs.
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
