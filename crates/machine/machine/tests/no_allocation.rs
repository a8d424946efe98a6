//! After warm-up a run allocates nothing an event: queues, slabs and lists have found their size.

use machine::Machine;
use machine::plan::workloads::{self, Opened, WorkloadOptions};
use requests::inject::{HostCost, Injector, Queues};
use requests::trace::TraceOptions;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::atomic::AtomicBool;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations seen at each look of the machine at the outside, one look every 65,536 events.
fn allocations(overrides: &[&str], job: &str) -> Vec<usize> {
    let overrides: Vec<String> = overrides.iter().map(|s| (*s).to_owned()).collect();
    let loaded = machine::load("d16", &overrides).expect("a good spec");
    let mut device = loaded.device(1).expect("a device");
    let drive = loaded.drive().expect("a drive");
    spec::precondition::apply(drive.precondition, drive.flash, &mut device.ftl, 1).expect("space");
    device.format_map();
    let options = WorkloadOptions {
        trace: TraceOptions::default(),
        queue_depth: None,
        capacity: device.capacity(),
        file_bytes: Ok(0),
        kernel: None,
        behind: None,
        seed: 1,
    };
    let Ok(Opened::Requests(opened)) = workloads::open(job, &options) else { panic!("a good job") };
    let mut machine = Machine::new(
        device,
        Injector::new(vec![opened.source], Queues::UNBOUNDED, HostCost::default()),
        None,
    );
    let mut looks = Vec::with_capacity(1 << 16);
    machine.run(&AtomicBool::new(false), |_| looks.push(ALLOCATOR.stats().allocations));
    looks
}

#[test]
fn none_after_warm_up() {
    let small = ["flash.geometry.blocks=64", "flash.ftl.gc.start=3", "flash.ftl.gc.stop=4"];
    let jobs = [
        "fio:rw=randread,bs=4k,iodepth=64,number_ios=400000,norandommap=1",
        "fio:rw=randwrite,bs=4k,iodepth=64,number_ios=300000,norandommap=1",
        "fio:rw=randrw,rwmixread=70,bs=4k,iodepth=64,number_ios=300000,norandommap=1",
    ];
    for job in jobs {
        let looks = allocations(&small, job);
        assert!(looks.len() >= 10, "the run is too short to tell: {} looks", looks.len());
        // What still grows late is a bound reached for the first time (a histogram's octave, a longer list): less than
        // one allocation in ten thousand events, where one an event would be ten thousand times as many.
        let last_quarter = looks[looks.len() - 1] - looks[looks.len() * 3 / 4];
        let events = looks.len() / 4 * 65_536;
        assert!(
            last_quarter * 10_000 < events,
            "{job}: {last_quarter} allocations in the last {events} events"
        );
    }
}
