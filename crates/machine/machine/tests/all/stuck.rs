//! A machine that is stuck says who waits for whom since when; one that is not says nothing.

use config::Diagnostic;
use engine::Time;
use machine::End;
use machine::Loaded;
use machine::Machine;
use machine::run::stall;
use machine::run::{Plan, run_alone};
use machine::source::FioSource;
use proto::IoRequest;
use requests::fio;
use requests::inject::{HostCost, Injector, Next, Queues, Source};
use requests::trace::TraceOptions;
use std::sync::atomic::AtomicBool;

fn device() -> ssd::Device {
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
    let loaded = Loaded::load("d16", &set.map(str::to_owned)).expect("a system");
    loaded.device(1).expect("a device")
}

fn job(text: &str, device: &ssd::Device) -> Box<dyn Source> {
    let jobs = fio::parse_inline(text).expect("a job");
    Box::new(FioSource::new(&jobs, device.capacity(), 1).expect("a job that fits"))
}

fn run(device: ssd::Device, source: Box<dyn Source>) -> (Machine, End) {
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
    let mut device = device();
    // Host writes may take no unit of any group, and nothing has been written that could be reclaimed.
    device.ftl.thresholds.hard = u32::MAX;
    let source = job("fio:rw=write,bs=4k,iodepth=4,number_ios=100", &device);
    let (machine, end) = run(device, source);
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
    let (machine, end) = run(device(), Box::new(Broken(Next::Blocked)));
    assert_eq!(end, End::Deadlock);
    let report = stall::report(&machine, end);
    assert!(report[0].contains("0 requests in flight"), "{report:#?}");
    assert!(
        report[1].contains("source 0 waits for a completion, but has no request in flight"),
        "{report:#?}"
    );
}

#[test]
fn a_source_that_stops_time() {
    let (machine, end) = run(device(), Box::new(Broken(Next::At(Time::ZERO))));
    assert_eq!(end, End::Stall);
    let report = stall::report(&machine, end);
    assert!(report[0].contains("time does not move"), "{report:#?}");
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
    let mut device = device();
    device.ftl.thresholds.hard = u32::MAX;
    let source = job("fio:rw=write,bs=4k,iodepth=4,number_ios=100", &device);
    let injector = Injector::new(vec![source, Box::new(Ticking)], Queues::UNBOUNDED, HostCost::default());
    let mut machine = Machine::new(device, injector, None);
    let end = machine.run(&AtomicBool::new(false), |_| {});
    assert_eq!(end, End::Standstill);
    assert!(machine.now() > Time::from_s(3_600), "{}", machine.now());
    let report = stall::report(&machine, end);
    assert!(report[0].contains("work has not advanced since"), "{report:#?}");
    assert!(report.iter().any(|line| line.starts_with("waiting: write of 4096 B at byte 0")), "{report:#?}");
}

/// Nothing is under way while a source sleeps, however long.
#[test]
fn a_source_that_sleeps_is_not_stuck() {
    let sleeps = job("fio:rw=read,bs=4k,startdelay=2d,number_ios=100", &device());
    let ticks = Box::new(Ticking);
    let injector = Injector::new(vec![sleeps, ticks], Queues::UNBOUNDED, HostCost::default());
    let mut machine = Machine::new(device(), injector, None).with_end(Some(Time::from_s(3 * 86_400)));
    let end = machine.run(&AtomicBool::new(false), |_| {});
    assert_eq!((end, machine.injector.completed), (End::Until, 100));
}

#[test]
fn a_run_that_ends_well_has_nothing_to_report() {
    let device = device();
    let source = job("fio:rw=write,bs=4k,iodepth=4,number_ios=100", &device);
    let (machine, end) = run(device, source);
    assert_eq!(end, End::Done);
    assert!(stall::report(&machine, end).is_empty());
}

#[test]
fn a_run_may_be_given_a_time() {
    let device = device();
    let source = job("fio:rw=read,bs=4k,startdelay=1ms,rate_iops=1000,number_ios=100", &device);
    let injector = Injector::new(vec![source], Queues::UNBOUNDED, HostCost::default());
    let mut machine = Machine::new(device, injector, None).with_end(Some(Time::from_ms(10)));
    let end = machine.run(&AtomicBool::new(false), |_| {});
    assert_eq!(end, End::Until);
    // Requests of every millisecond from the first on; the event that was due next is left alone, and its time has not come.
    assert_eq!((machine.injector.issued, machine.injector.outstanding()), (10, 1));
    assert_eq!(machine.now(), Time::from_ms(10));
    let report = stall::report(&machine, end);
    assert!(report[0].contains("`sim.until` has ended the run"), "{report:#?}");
}

#[test]
fn a_run_that_lasts_longer_than_the_clock_ends_before_it() {
    let device = device();
    let source = job("fio:rw=read,bs=4k,startdelay=213d,number_ios=100", &device);
    let (machine, end) = run(device, source);
    assert_eq!(end, End::Horizon);
    let report = stall::report(&machine, end);
    assert!(report[0].contains("the end of the simulated clock"), "{report:?}");
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
