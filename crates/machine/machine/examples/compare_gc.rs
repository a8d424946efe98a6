//! Compares garbage collection policies: the same random overwrites on the same device, one policy after the other.
//!
//! A spec is data, so a policy is one override. The greedy policy moves the least under uniform writes, a random victim
//! the most; the best of two drawn blocks ("power of two choices") lies between, near the greedy one.

use config::Diagnostic;
use machine::run::{Plan, run_alone};

fn write_amplification(victim: &str) -> Result<f64, Diagnostic> {
    let overwrite = "fio:rw=randwrite,bs=4k,iodepth=16,norandommap=1,randrepeat=0,size=100%,loops=6";
    let plan = Plan::new("d16", overwrite)
        .set("flash.precondition=sequential")
        .set("flash.geometry.channels=2")
        .set("flash.geometry.ways=1")
        .set("flash.geometry.blocks=64")
        .set("flash.geometry.pages=32")
        .set("flash.ftl.over_provisioning=20%")
        .set("flash.ftl.gc.start=3")
        .set("flash.ftl.gc.stop=4")
        .set("flash.ftl.gc.hard=1")
        .set(&format!("flash.ftl.gc.victim={victim}"));
    let document = run_alone(&plan)?;
    assert!(document.ok, "{:?}", document.checks);
    document.flash[0].write_amplification.ok_or_else(|| Diagnostic::new("nothing was written"))
}

fn main() -> Result<(), Diagnostic> {
    let mut found = Vec::new();
    for victim in ["greedy", "{ d_choices = { d = 2 } }", "random"] {
        let amplification = write_amplification(victim)?;
        println!("{victim:<27} write amplification {amplification:.3}");
        found.push(amplification);
    }
    let [greedy, two_choices, random] = found[..] else { unreachable!("three policies") };
    assert!(1.0 < greedy && greedy < two_choices && two_choices < random);
    Ok(())
}
