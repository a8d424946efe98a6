//! Write amplification under uniform random overwrites of single units.

use super::constants::Constants;
use super::{DRIVE, Drive};
use crate::stand::{self, drive, fio};
use crate::stand::{Churn, Overwrite};
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use engine::Rng;
use spec::Loaded;
use ssd::Device;
use theory::wa::{self, Spare};

const TOLERANCE: f64 = 0.02;
/// Spares, per cent of the logical space.
const SPARES: &[u32] = &[7, 12, 28, 50];
/// Turns of the logical space that bring the device into its steady state.
const WARM_UP: u64 = 6;

/// A victim policy and its formula.
struct Policy {
    name: &'static str,
    /// The end of the override `flash.ftl.gc.victim…`.
    victim: &'static str,
    formula: fn(u32, Spare) -> f64,
    place: &'static str,
    /// Turns of the logical space that average its fluctuations out.
    turns: u64,
}

const POLICIES: &[Policy] = &[
    Policy {
        name: "greedy",
        victim: "=greedy",
        formula: wa::greedy,
        place: "theory::wa::greedy, mean field of B. Van Houdt, SIGMETRICS 2013; W. Bux, I. Iliadis, Performance \
                Evaluation 67(11), 2010",
        turns: 6,
    },
    Policy {
        name: "fifo",
        victim: "=fifo",
        formula: |_, spare| wa::fifo(spare),
        place: "theory::wa::fifo, alpha / (alpha + W(-alpha exp(-alpha))): P. Desnoyers, SYSTOR 2012, (4)",
        turns: 6,
    },
    Policy {
        name: "d2",
        victim: ".d_choices.d=2",
        formula: |units, spare| wa::d_choices(units, spare, 2),
        place: "theory::wa::d_choices, mean field of B. Van Houdt, SIGMETRICS 2013",
        turns: 12,
    },
    Policy {
        name: "d10",
        victim: ".d_choices.d=10",
        formula: |units, spare| wa::d_choices(units, spare, 10),
        place: "theory::wa::d_choices, mean field of B. Van Houdt, SIGMETRICS 2013",
        turns: 6,
    },
    Policy {
        name: "random",
        victim: "=random",
        formula: |_, spare| wa::random(spare),
        place: "theory::wa::random, T / (T - U): B. Van Houdt, SIGMETRICS 2013",
        turns: 24,
    },
];

/// Other devices, greedy at 12 %: planes that collect apart, and thresholds with room between them.
const DEVICES: &[(&str, Drive)] =
    &[("planes", Drive { planes: 2, ..DRIVE }), ("thresholds", Drive { start: 40, stop: 61, ..DRIVE })];

pub(super) fn cases() -> Vec<Case> {
    let functional = POLICIES.iter().flat_map(|policy| {
        SPARES.iter().map(move |spare| {
            let id = format!("wa.{}.{spare}.functional", policy.name);
            Case::new([id.clone()], move |context| {
                Ok(vec![without_time(&id, policy, *spare, DRIVE, context)?])
            })
        })
    });
    let others = DEVICES.iter().map(|(name, drive)| {
        let id = format!("wa.{name}.functional");
        Case::new([id.clone()], move |context| {
            Ok(vec![without_time(&id, &POLICIES[0], 12, *drive, context)?])
        })
    });
    let timed = POLICIES.iter().flat_map(|policy| {
        SPARES.iter().map(move |spare| {
            let name = format!("{}.{spare}", policy.name);
            let ids = [format!("wa.{name}.timed")];
            Case::new(ids, move |context| in_time(&name, policy, *spare, context))
        })
    });
    functional.chain(others).chain(timed).chain([saturated()]).collect()
}

/// Uniform over a logical space that lies over planes in turn.
fn uniform(logical: u64, planes: u32) -> impl Fn(&mut Rng) -> Overwrite {
    move |rng| {
        let unit = rng.below(logical);
        Overwrite { unit, group: (unit % u64::from(planes)) as u32, placement: 0 }
    }
}

/// A device that was written once in order.
fn filled(drive: &Drive, victim: &str, spare: u32) -> Result<(Loaded, Device), Diagnostic> {
    let loaded = drive.load(victim, f64::from(spare) / 100.0)?;
    let device = stand::device(&loaded, true)?;
    Ok((loaded, device))
}

fn without_time(
    id: &str,
    policy: &Policy,
    spare: u32,
    drive: Drive,
    context: &Context<'_>,
) -> Result<Row, Diagnostic> {
    let drive = context.choose(drive, Drive { blocks: drive.blocks / 2, ..drive });
    let (_, mut device) = filled(&drive, policy.victim, spare)?;
    let (of, how) = drive.spare(&device);
    let mut churn = Churn::new(uniform(device.ftl.logical(), drive.planes), &mut device, context.stop);
    churn.turn(context.choose(WARM_UP, 4))?;
    let (measured, interval) = churn.measure(context.choose(policy.turns, 2))?;
    let half_width = interval.map_or(f64::INFINITY, |i| i.half_width);
    let rule = context.choose(Rule::Share(TOLERANCE), Rule::Share(TOLERANCE).sampled(half_width));
    let expected = (policy.formula)(drive.pages, of);
    Ok(Row::new(id, "ratio", expected, measured, rule)
        .place(policy.place)
        .note(format!("FTL without time; {how}; 99 % interval +-{half_width:.4}")))
}

fn in_time(name: &str, policy: &Policy, spare: u32, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let (loaded, mut device) = filled(&DRIVE, policy.victim, spare)?;
    let (of, how) = DRIVE.spare(&device);
    Churn::new(uniform(device.ftl.logical(), DRIVE.planes), &mut device, context.stop)
        .turn(context.choose(WARM_UP, 4))?;
    let bytes = device.capacity() * context.choose(policy.turns, 2) / 2;
    let job = format!("fio:rw=randwrite,bs=4k,norandommap=1,iodepth=8,io_size={bytes}");
    let source = fio(&job, &device)?;
    let ran = drive(&loaded, device, source, context)?;
    let expected = (policy.formula)(DRIVE.pages, of);
    let row =
        Row::new(format!("wa.{name}.timed"), "ratio", expected, ran.amplification(), Rule::Share(TOLERANCE))
            .place(policy.place)
            .note(format!("{job}; {how}; at least {} blocks free", ran.0.device().ftl.free_min()));
    Ok(vec![row])
}

/// A die that overwrites and collects without rest.
fn saturated() -> Case {
    let id = "throughput.overwrite.die";
    let ids = [id.to_owned()];
    Case::new(ids, move |context| {
        let (loaded, mut device) = filled(&DRIVE, "=greedy", 12)?;
        Churn::new(uniform(device.ftl.logical(), DRIVE.planes), &mut device, context.stop)
            .turn(context.choose(WARM_UP, 4))?;
        let bytes = device.capacity() * context.choose(2, 1);
        let source =
            fio(&format!("fio:rw=randwrite,bs=4k,norandommap=1,iodepth=8,io_size={bytes}"), &device)?;
        let ran = drive(&loaded, device, source, context)?;
        let constants = Constants::of(loaded.drive()?);
        let [command, data_out, data_in] = constants.cycles();
        // The formula has one set-up for all operations; reads and programs differ by a thousandth of a program.
        let model = constants.device(1, command + (data_out + data_in) / 2);
        let amplification = ran.amplification();
        let bound = model.overwrite_limits(amplification, DRIVE.pages, false).die;
        let row = Row::new(id, "MB/s", bound * 1e6, ran.bytes_per_s(proto::IoOp::Write) / 1e6, Rule::Share(0.01))
            .place("theory::flash::overwrite_limits: A programs, A - 1 reads and A / pages erases for each host write")
            .note(format!("one die, write amplification {amplification:.4} as measured in this run"));
        Ok(vec![row])
    })
}
