//! Queues: Poisson arrivals at one die, and a closed network of dies.

use super::constants::Constants;
use crate::stand::{d16, device, drive, fio, observe, run};
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use proto::IoOp;
use theory::queue::{Md1, asymptotic_bounds, uniform_servers};

/// One die alone: it is held from the command to the end of the data transfer, so that service is constant.
const ONE_DIE: &[&str] = &["flash.geometry.channels=1", "flash.geometry.ways=1", "flash.geometry.planes=1"];
const TOLERANCE: f64 = 0.01;
const CONFIDENCE: f64 = 0.99;

/// Load in per cent, and requests that bring the interval below the tolerance: to a quarter of it where that is cheap,
/// because one interval in a hundred misses.
const LOADS: &[(u32, u64)] = &[(30, 20_000_000), (60, 20_000_000), (90, 24_000_000)];
/// Requests of a test.
const QUICK: u64 = 200_000;

/// Depths of the closed network of 32 dies with a channel each.
const DEPTHS: &[u32] = &[16, 32, 128];
const SERVERS: &[&str] = &["flash.geometry.channels=32", "flash.geometry.ways=1", "flash.geometry.planes=1"];

pub(super) fn cases() -> Vec<Case> {
    let md1 = LOADS.iter().map(|(load, requests)| {
        let name = format!("md1.{load}");
        let ids = [format!("queue.{name}")];
        Case::new(ids, move |context| poisson(&name, *load, context.choose(*requests, QUICK), context))
    });
    let closed = DEPTHS.iter().map(|depth| {
        let name = format!("closed.{depth}");
        let bounds = ["low", "high"].map(|bound| format!("queue.{name}.{bound}"));
        Case::new(bounds, move |context| network(&name, *depth, context))
    });
    md1.chain(closed).collect()
}

fn poisson(name: &str, load: u32, requests: u64, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let loaded = d16(ONE_DIE)?;
    let constants = Constants::of(loaded.drive()?);
    let [command, data_out, _] = constants.cycles();
    let service =
        (command + constants.read() + data_out + constants.on_channel(constants.page())) as f64 / 1e12;
    let unloaded: u64 = constants.read_parts().iter().map(|part| part.1).sum();
    let rate = (f64::from(load) / 100.0 / service).round();
    let model = Md1 { arrival_rate: rate, service };

    let device = device(&loaded, true)?;
    let job = format!(
        "fio:rw=randread,bs=4k,norandommap=1,rate_iops={rate},rate_process=poisson,iodepth=1000000,\
         io_size={}",
        requests * constants.page()
    );
    let (source, sojourns) = observe(fio(&job, &device)?);
    let ran = drive(&loaded, device, source, context)?;
    let interval = sojourns
        .borrow()
        .interval(CONFIDENCE)
        .ok_or_else(|| Diagnostic::new(format!("too few requests: {}", ran.of(IoOp::Read).requests)))?;
    let half_width = interval.half_width / 1e3;
    let rule = context
        .choose(Rule::Interval { share: TOLERANCE, half_width }, Rule::Share(TOLERANCE).sampled(half_width));
    let (expected, measured) = (model.mean_wait() * 1e9, (interval.mean - unloaded as f64) / 1e3);
    let row = Row::new(format!("queue.{name}"), "ns", expected, measured, rule)
        .place("M/D/1 mean wait, load service / 2 (1 - load): F. Pollaczek 1930; L. Kleinrock 1975, section 5.6")
        .note(format!(
            "load {:.6}, service {} ns at one die, {} batches of {} requests; 99 % interval {:.1} to {:.1} ns",
            model.load(),
            service * 1e9,
            interval.batches,
            interval.batch_size,
            measured - half_width,
            measured + half_width
        ));
    Ok(vec![row])
}

fn network(name: &str, depth: u32, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let loaded = d16(SERVERS)?;
    let constants = Constants::of(loaded.drive()?);
    let [command, data_out, _] = constants.cycles();
    let service =
        (command + constants.read() + data_out + constants.on_channel(constants.page())) as f64 / 1e12;
    // Time of a request without holding a die.
    let unloaded: u64 = constants.read_parts().iter().map(|part| part.1).sum();
    let think = unloaded as f64 / 1e12 - service;
    let dies = loaded.drive()?.flash.geometry.channels;
    let demands = vec![service / f64::from(dies); dies as usize];

    let requests = context.choose(2_000_000, 200_000);
    let job = format!(
        "fio:rw=randread,bs=4k,norandommap=1,iodepth={depth},io_size={}",
        requests * constants.page()
    );
    let ran = run(SERVERS, true, &job, context)?;
    let measured = ran.bytes_per_s(IoOp::Read) / constants.page() as f64;
    let exponential = theory::queue::mva(&demands, think, depth).throughput;
    let bounds = asymptotic_bounds(&demands, think, depth);
    let alone = uniform_servers(dies, service, depth);
    let note = format!(
        "{depth} customers, {dies} dies with a channel each, service {} ns; without think time the lower bound \
         would be {alone:.1}",
        service * 1e9
    );
    let row = |bound: &str, value: f64, rule| {
        Row::new(format!("queue.{name}.{bound}"), "IOPS", value, measured, rule)
    };
    let low = row("low", exponential, Rule::AtLeast)
        .place("as many exponential servers, mean value analysis: M. Reiser, S. S. Lavenberg, J. ACM 27(2), 1980; \
                constant service does more")
        .note(note);
    let high = row("high", bounds.throughput_high, Rule::AtMost)
        .place("asymptotic bound, min(n / (D + Z), 1 / D max): P. J. Denning, J. P. Buzen, Computing Surveys 10(3), 1978");
    Ok(vec![low, high])
}
