//! Runs that end before their work is done. One that is ended from outside has no result before anything was simulated,
//! and from then on a partial one. A stuck machine reports which part waits for which, and since when; one that is not
//! reports nothing.

use config::Diagnostic;
use engine::Time;
use machine::result::Document;
use machine::run::{Observers, Outside, Plan, Policies, Session, Stage, run, run_alone, run_observed, stall};
use machine::source::FioSource;
use machine::{End, Machine};
use proto::IoRequest;
use requests::fio;
use requests::inject::{HostCost, Injector, Next, Queues, Source};
use requests::trace::TraceOptions;
use spec::precondition::parse;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs a plan with a stop at the `nth` stage that `is` it; which stages there were, by name.
fn stopped(plan: &Plan, is: impl Fn(&Stage<'_>) -> bool, nth: u32) -> (Option<Document>, Vec<&'static str>) {
    let (stop, mut seen, mut stages) = (AtomicBool::new(false), 0, Vec::new());
    let mut watch = |stage: Stage<'_>| {
        let name = match stage {
            Stage::Reading(_) => "reading",
            Stage::Building => "building",
            Stage::Preconditioning(_) => "preconditioning",
            Stage::Running(_) => "running",
            Stage::Checking => "checking",
        };
        if stages.last() != Some(&name) {
            stages.push(name);
        }
        seen += u32::from(is(&stage));
        if seen == nth {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &stop,
        watch: &mut watch,
        states: None,
    };
    let document = run_observed(plan, &mut outside, Observers::default()).expect("the plan is usable");
    (document, stages)
}

fn plan(state: &str) -> Plan {
    let mut plan = Plan::new("d16", "fio:rw=randrw,bs=4k,iodepth=8,number_ios=200000,norandommap=1");
    plan.precondition = Some(parse(state).expect("a state"));
    plan
}

/// Two dozen drive writes of 16 GiB would be a hundred million writes: it ends long before, or this test never does.
#[test]
fn every_state_that_takes_long_is_given_up() {
    for state in ["zipf:writes=1000", "steady:tolerance=0.001%", "uniform", "analytic"] {
        let small = plan(state).set("flash.geometry.page_size=4KiB").set("flash.ftl.map_unit=4KiB");
        let (document, stages) = stopped(&small, |stage| matches!(stage, Stage::Preconditioning(_)), 3);
        assert!(document.is_none(), "{state}: nothing was simulated");
        assert_eq!(stages, ["reading", "building", "preconditioning"], "{state}");
    }
}

#[test]
fn a_stop_before_the_first_event_leaves_no_result() {
    for name in ["reading", "building", "preconditioning"] {
        let is = |stage: &Stage<'_>| match name {
            "reading" => matches!(stage, Stage::Reading(_)),
            "building" => matches!(stage, Stage::Building),
            _ => matches!(stage, Stage::Preconditioning(_)),
        };
        let (document, stages) = stopped(&plan("sequential"), is, 1);
        assert!(document.is_none() && stages.last() == Some(&name), "{name}: {stages:?}");
    }
}

#[test]
fn a_stop_after_the_first_event_leaves_the_result_of_a_part() {
    let (document, stages) = stopped(&plan("none"), |stage| matches!(stage, Stage::Running(_)), 2);
    let document = document.expect("simulated time has passed");
    assert_eq!(stages, ["reading", "building", "preconditioning", "running", "checking"]);
    assert!(document.partial && !document.ok && document.simulated_ns > 0.0);
    assert!(!document.is_stuck(), "it did not end by itself");
    let failed: Vec<&str> = document.checks.iter().filter(|c| !c.ok).map(|c| c.name.as_str()).collect();
    assert_eq!(failed, ["no work is left"]);
    let requests = document.io.kinds.all.requests;
    assert!(requests > 0 && requests < 200_000, "{requests}");
}

/// All work was done, but the shadow's findings were not examined.
#[test]
fn a_stop_in_the_last_checks_is_told() {
    let mut plan = plan("none").set("sim.shadow=true");
    plan.workloads = vec!["fio:rw=write,bs=4k,number_ios=100".to_owned()];
    let (document, _) = stopped(&plan, |stage| matches!(stage, Stage::Checking), 1);
    let document = document.expect("all was simulated");
    assert!(!document.partial && !document.ok);
    let failed = document.checks.iter().find(|check| !check.ok).expect("one fails");
    assert_eq!((failed.name.as_str(), failed.detail.contains("interrupted")), ("shadow_units", true));
}

/// MQMS's drive has 8.6e9 map units of 512 B. A look at each of them takes minutes.
#[test]
fn the_last_look_of_a_shadow_costs_what_was_touched() {
    let mut plan = Plan::new("mqms", "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=200");
    plan = plan.set("sim.shadow=true");
    let document = machine::run::run_alone(&plan).expect("it can run");
    assert!(document.ok, "{:?}", document.checks);
    assert!(document.checks.iter().any(|check| check.name == "shadow_units"));
}

#[test]
fn run_without_observers_refuses_what_was_not_begun() {
    let stop = AtomicBool::new(true);
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &stop,
        watch: &mut |_| {},
        states: None,
    };
    let fault = run(&plan("none"), &mut outside).expect_err("it was stopped before it began");
    assert!(fault.what.contains("before the simulation began"), "{fault}");
}

/// Also of what a core waits for at the end, though it has retired nothing since: all of its time so far, if it waits for its first line.
#[test]
fn a_server_that_is_ended_accounts_for_all_of_its_time() {
    for end in ["2ns", "123ns", "5311ns"] {
        let plan = Plan::new("dram-only", "tatp:size=64MiB").set("cpu.warmup.fixed.jobs=0");
        let document =
            run_alone(&plan.set(&format!("sim.until={end}"))).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(document.ok, "{end}: {:?}", document.checks);
        let shares = &document.cpu[0].time_share;
        assert!((shares.values().sum::<f64>() - 1.0).abs() < 1e-9, "{end}: {shares:?}");
        if end == "2ns" {
            assert_eq!(shares["retiring"], 0.0, "{shares:?}");
        }
    }
}

// A run in steps comes to what a run in one piece comes to, whatever is looked at meanwhile.

fn without_run(document: &Document) -> serde_json::Value {
    let mut all = serde_json::to_value(document).unwrap();
    all.as_object_mut().unwrap().remove("run");
    all
}

fn in_steps(plan: &Plan, step: Time) -> (Document, u32) {
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
        states: None,
    };
    let opened = Session::open(plan, &mut outside, Observers::default(), Policies::default());
    let mut session = opened.unwrap().expect("nothing stops it");
    let (mut pause, mut pauses) = (Time::ZERO, 0);
    while session.end().is_none() {
        pause += step;
        session.run(&mut outside, pause).unwrap();
        if session.end().is_none() {
            assert!(session.machine().now() >= pause);
            assert!(session.document(&mut outside).partial);
            pauses += 1;
        }
    }
    (session.document(&mut outside), pauses)
}

fn check(plan: &Plan, step: Time) {
    let whole = run_alone(plan).unwrap();
    let (steps, pauses) = in_steps(plan, step);
    assert!(pauses > 20, "{pauses} pauses");
    assert!(whole.ok);
    assert_eq!(without_run(&whole), without_run(&steps));
}

#[test]
fn requests_with_collection() {
    let plan = Plan::new("d16", "fio:rw=randrw,bs=4k,iodepth=32,number_ios=5000")
        .set("flash.geometry.channels=2")
        .set("flash.geometry.ways=1")
        .set("flash.geometry.blocks=64")
        .set("flash.geometry.pages=32")
        .set("flash.ftl.gc.start=3")
        .set("flash.ftl.gc.stop=4")
        .set("flash.ftl.gc.hard=1")
        .set("flash.precondition=steady");
    check(&plan, Time::from_us(777));
}

/// The warm-up of a server is over at a look between slices, which a pause must not move.
#[test]
fn a_server_whose_warm_up_is_looked_for() {
    let plan =
        Plan::new("dram-only", "tatp:size=64MiB").set("cpu.load.jobs=2000").set("cpu.warmup=\"detected\"");
    check(&plan, Time::from_us(7));
}

/// Reads of page groups that would be one event have pauses between their pages.
#[test]
fn an_accelerator_that_reads() {
    let plan = Plan::new("flashabacus", "atax:m=8192,n=8192,instances=2").set("accelerator.sample=16384");
    check(&plan, Time::from_ms(3));
}

fn small_device() -> ssd::Device {
    let set = [
        "flash.geometry.blocks=32",
        "flash.geometry.pages=16",
        "flash.geometry.channels=1",
        "flash.geometry.ways=1",
        "flash.ftl.gc.start=3",
        "flash.ftl.gc.stop=4",
        "flash.ftl.gc.hard=1",
        "flash.ftl.over_provisioning=25%",
    ];
    let loaded = machine::load("d16", &set.map(str::to_owned)).expect("a system");
    loaded.device(1).expect("a device")
}

fn job_of(text: &str, device: &ssd::Device) -> Box<dyn Source> {
    let jobs = fio::parse_inline(text).expect("a job");
    Box::new(FioSource::new(&jobs, device.capacity(), 1).expect("a job that fits"))
}

fn run_to_its_end(device: ssd::Device, source: Box<dyn Source>) -> (Machine, End) {
    let injector = Injector::new(vec![source], Queues::UNBOUNDED, HostCost::default());
    let mut machine = Machine::new(device, injector, None);
    let end = machine.run(&AtomicBool::new(false), |_| {});
    (machine, end)
}

/// Says the same for ever.
struct Broken(Next);

impl Source for Broken {
    fn poll(&mut self, _: Time, _: u32) -> Result<Next, Diagnostic> {
        Ok(self.0.clone())
    }
    fn completed(&mut self, _: Time, _: &IoRequest) {}
    fn flows(&self) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn writes_that_wait_for_space_that_never_comes() {
    let mut device = small_device();
    // Host writes may take no unit of any group, and nothing has been written that could be reclaimed.
    device.ftl.thresholds.hard = u32::MAX;
    let source = job_of("fio:rw=write,bs=4k,iodepth=4,number_ios=100", &device);
    let (machine, end) = run_to_its_end(device, source);
    assert_eq!(end, End::Deadlock);
    let report = stall::report(&machine, end);
    let said = |text: &str| report.iter().filter(|line| line.contains(text)).count();
    assert!(report[0].contains("work is left; 4 requests in flight"), "{report:#?}");
    assert_eq!(said("waiting: write of 4096 B at byte"), 4, "{report:#?}");
    for offset in [0, 4096, 8192, 12288] {
        assert_eq!(said(&format!("at byte {offset} (source 0)")), 1, "{report:#?}");
    }
    // All were issued at zero, so their age is the time of the end.
    assert_eq!(said(&format!("issued {} ago, in the device", machine.now())), 4, "{report:#?}");
    assert_eq!(said("source 0 waits for one of its 4 requests"), 1, "{report:#?}");
    // One die of two planes: both groups are short.
    assert_eq!(said("short of space: group"), 2, "{report:#?}");
    assert_eq!(said("die "), 0, "no die has anything to do: {report:#?}");
}

#[test]
fn a_source_that_waits_for_nothing() {
    let (machine, end) = run_to_its_end(small_device(), Box::new(Broken(Next::Blocked)));
    assert_eq!(end, End::Deadlock);
    let report = stall::report(&machine, end);
    assert!(report[0].contains("0 requests in flight"), "{report:#?}");
    assert!(report[1].contains("source 0 waits for a completion, with no request in flight"), "{report:#?}");
}

#[test]
fn a_source_that_stops_time() {
    let (machine, end) = run_to_its_end(small_device(), Box::new(Broken(Next::At(Time::ZERO))));
    assert_eq!(end, End::Stall);
    let report = stall::report(&machine, end);
    assert!(report[0].contains("simulated time no longer advances"), "{report:#?}");
}

/// Asks for the present to come again a second later, for ever.
struct Ticking;

impl Source for Ticking {
    fn poll(&mut self, now: Time, _: u32) -> Result<Next, Diagnostic> {
        Ok(Next::At(now + Time::from_s(1)))
    }
    fn completed(&mut self, _: Time, _: &IoRequest) {}
    fn flows(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Time moves, and the work that is under way does not: writes wait for space that never comes.
#[test]
fn work_that_stands_still_while_time_moves() {
    let mut device = small_device();
    device.ftl.thresholds.hard = u32::MAX;
    let source = job_of("fio:rw=write,bs=4k,iodepth=4,number_ios=100", &device);
    let injector = Injector::new(vec![source, Box::new(Ticking)], Queues::UNBOUNDED, HostCost::default());
    let mut machine = Machine::new(device, injector, None);
    let end = machine.run(&AtomicBool::new(false), |_| {});
    assert_eq!(end, End::Standstill);
    assert!(machine.now() > Time::from_s(3_600), "{}", machine.now());
    let report = stall::report(&machine, end);
    assert!(report[0].contains("simulated time advances, but work has not since"), "{report:#?}");
    assert!(report.iter().any(|line| line.starts_with("waiting: write of 4096 B at byte 0")), "{report:#?}");
}

/// Nothing is under way while a source sleeps, however long.
#[test]
fn a_source_that_sleeps_is_not_stuck() {
    let sleeps = job_of("fio:rw=read,bs=4k,startdelay=2d,number_ios=100", &small_device());
    let ticks = Box::new(Ticking);
    let injector = Injector::new(vec![sleeps, ticks], Queues::UNBOUNDED, HostCost::default());
    let mut machine = Machine::new(small_device(), injector, None).with_end(Some(Time::from_s(3 * 86_400)));
    let end = machine.run(&AtomicBool::new(false), |_| {});
    assert_eq!((end, machine.injector.completed), (End::Until, 100));
}

#[test]
fn a_run_that_ends_well_has_nothing_to_report() {
    let device = small_device();
    let source = job_of("fio:rw=write,bs=4k,iodepth=4,number_ios=100", &device);
    let (machine, end) = run_to_its_end(device, source);
    assert_eq!(end, End::Done);
    assert!(stall::report(&machine, end).is_empty());
}

#[test]
fn a_run_may_be_given_a_time() {
    let device = small_device();
    let source = job_of("fio:rw=read,bs=4k,startdelay=1ms,rate_iops=1000,number_ios=100", &device);
    let injector = Injector::new(vec![source], Queues::UNBOUNDED, HostCost::default());
    let mut machine = Machine::new(device, injector, None).with_end(Some(Time::from_ms(10)));
    let end = machine.run(&AtomicBool::new(false), |_| {});
    assert_eq!(end, End::Until);
    // Requests of every millisecond from the first on; the event that was due next is left alone, and its time has not come.
    assert_eq!((machine.injector.issued, machine.injector.outstanding()), (10, 1));
    assert_eq!(machine.now(), Time::from_ms(10));
    let report = stall::report(&machine, end);
    assert!(report[0].contains("`sim.until` ended the run"), "{report:#?}");
}

#[test]
fn a_run_that_lasts_longer_than_the_clock_ends_before_it() {
    let device = small_device();
    let source = job_of("fio:rw=read,bs=4k,startdelay=213d,number_ios=100", &device);
    let (machine, end) = run_to_its_end(device, source);
    assert_eq!(end, End::Horizon);
    let report = stall::report(&machine, end);
    assert!(report[0].contains("the limit of the simulated clock"), "{report:?}");
}

/// The host's software works on a request before its submission and after its completion: then the device does not have it.
#[test]
fn what_the_host_works_on_when_time_is_over_is_not_missed_in_the_device() {
    for (key, startdelay) in [("host.submit=2us", "1"), ("host.complete=200us", "999900us")] {
        let plan = Plan {
            system: "d16".into(),
            text: None,
            set: ["flash.precondition=none", key, "sim.until=1s"].map(String::from).into(),
            workloads: vec![format!("fio:rw=read,bs=4k,number_ios=7,startdelay={startdelay}")],
            seed: 1,
            precondition: None,
            warmup: None,
            trace: TraceOptions::default(),
            queue_depth: None,
        };
        let document = run_alone(&plan).unwrap_or_else(|e| panic!("{e}"));
        let failed: Vec<_> = document.checks.iter().filter(|check| !check.ok).collect();
        assert!(failed.is_empty() && document.ok, "{key}: {failed:?}");
        let held = document.checks.iter().any(|check| check.name.contains("the device holds"));
        assert!(held && document.simulated_ns >= 1e9, "{key}: {}", document.simulated_ns);
    }
}
