//! A policy of one's own, in one's own crate: a trait is implemented, a device gets it, and a machine runs.
//!
//! The victim policy here takes the emptiest reclaim unit that has rested for a while: between `greedy`, which takes the
//! emptiest at once, and `fifo`, which takes the one that has rested longest. A policy that is to ship with nandscape is the same code in a file of
//! its family's folder, and a line in the family's list.

use config::Diagnostic;
use ftl::page_map::Ftl;
use ftl::page_map::gc::{Victim, VictimView};
use ftl::page_map::wear::WearRule;
use machine::source::FioSource;
use machine::{End, Machine};
use nand::dies::op::Class;
use requests::fio;
use requests::inject::{HostCost, Injector};
use spec::queues;
use std::sync::atomic::AtomicBool;

/// The emptiest unit that has rested while nine tenths of what all closed units hold was written.
struct Rested;

impl Victim for Rested {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        let rest = view.len() as u64 * u64::from(view.units_per_ru) * 9 / 10;
        let rested = view.by_valid().find(|unit| view.age(*unit) >= rest);
        rested.or_else(|| view.by_age().next())
    }
}

/// Write amplification of random overwrites; the policy of the spec, or one's own.
fn write_amplification(victim: &str, own: Option<Box<dyn Victim>>) -> Result<f64, Diagnostic> {
    let set = [
        "flash.geometry.channels=2",
        "flash.geometry.ways=1",
        "flash.geometry.blocks=64",
        "flash.geometry.pages=32",
        "flash.ftl.over_provisioning=20%",
        "flash.ftl.gc.start=3",
        "flash.ftl.gc.stop=4",
        "flash.ftl.gc.hard=1",
        &format!("flash.ftl.gc.victim={victim}"),
    ];
    let loaded = machine::load("d16", &set.map(str::to_owned))?;
    let mut device = loaded.device(1)?;
    if let Some(own) = own {
        let Ftl { geo, thresholds, .. } = &device.ftl;
        device.ftl =
            Ftl::new(geo.clone(), (device.ftl.logical(), 0), 1, WearRule::default(), *thresholds, own);
    }
    device.ftl.assume_sequential(device.ftl.logical());
    let job = "fio:rw=randwrite,bs=4k,iodepth=16,norandommap=1,randrepeat=0,size=100%,loops=6";
    let source = FioSource::new(&fio::parse_inline(job)?, device.capacity(), 1)?;
    let injector = Injector::new(vec![Box::new(source)], queues(loaded.drive()?.flash), HostCost::default());
    let mut machine = Machine::new(device, injector, None);
    let end = machine.run(&AtomicBool::new(false), |_| {});
    assert_eq!(end, End::Done);
    let checks = machine.device().checks(machine.now());
    assert!(checks.iter().all(|check| check.ok));
    // Programmed in all, over programmed for the host.
    let units = |class: Class| machine.device().backend.counters.units[class as usize] as f64;
    Ok((units(Class::HostProgram) + units(Class::GcProgram)) / units(Class::HostProgram))
}

fn main() -> Result<(), Diagnostic> {
    let greedy = write_amplification("greedy", None)?;
    let own = write_amplification("greedy", Some(Box::new(Rested)))?;
    let fifo = write_amplification("fifo", None)?;
    println!("greedy {greedy:.3}, rested {own:.3}, fifo {fifo:.3}");
    assert!(greedy < own && own < fifo);
    Ok(())
}
