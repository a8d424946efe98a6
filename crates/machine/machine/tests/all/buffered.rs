//! Write amplification and what is still in the buffer.

use machine::result::{Document, FlashResult, human};
use machine::run::{Plan, run_alone};

const UNIT: u64 = 4096;

/// A drive with a buffer whose flush commands reach flash.
fn run(job: &str, more: &[&str]) -> Document {
    let plan = Plan::new("pm9a3", job).set("flash.buffer.protected=false");
    let plan = more.iter().fold(plan, |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(document.ok, "{:?}", document.checks);
    document
}

fn flash(document: &Document) -> &FlashResult {
    &document.flash[0]
}

fn written(document: &Document) -> u64 {
    document.io.kinds.get("write").expect("writes").bytes
}

/// No unit twice: what was written is on flash or in the buffer, and the page says which figure it prints.
#[test]
fn what_is_written_is_programmed_or_still_buffered() {
    let document = run("fio:rw=randwrite,bs=4k,iodepth=32,number_ios=5000", &[]);
    let f = flash(&document);
    assert!(f.buffered_bytes > 0);
    assert_eq!(written(&document), f.host_programs * UNIT + f.buffered_bytes);
    let so_far = f.host_programs as f64 / 5000.0;
    assert_eq!(f.write_amplification, Some(so_far));
    assert_eq!(f.flushed_write_amplification, Some(1.0));
    let megabytes = f.buffered_bytes as f64 / 1e6;
    let said = format!(
        "write amplification {so_far:.3} so far, 1.000 once the {megabytes:.1} MB still in the buffer are on flash;"
    );
    assert!(human(&document).contains(&said), "{}", human(&document));
}

/// A flush at the end is the independent account.
#[test]
fn a_flush_at_the_end_gives_what_was_foretold() {
    // Part writes and rewrites, some of them in the buffer.
    let job =
        "fio:rw=randwrite,bssplit=4k/60:512/30:32k/10,iodepth=16,number_ios=6000,size=16m,norandommap=1";
    let (open, flushed) = (run(job, &[]), run(&format!("{job},end_fsync=1"), &[]));
    assert!(flash(&open).buffered_bytes > 0);
    assert_eq!(flash(&flushed).buffered_bytes, 0);
    assert_eq!(flash(&flushed).flushed_write_amplification, flash(&flushed).write_amplification);
    let foretold = flash(&open).flushed_write_amplification.expect("writes");
    let came = flash(&flushed).write_amplification.expect("writes");
    assert!((foretold / came - 1.0).abs() < 1e-9, "{foretold} foretold, {came} came");
    assert!(flash(&open).write_amplification.expect("writes") < 0.9 * came);
}

/// With collections each unit in the buffer brings its share of moves along.
#[test]
fn a_flush_at_the_end_under_collection_is_foretold_nearly() {
    let small = [
        "flash.geometry.blocks=24",
        "flash.geometry.pages=48",
        "flash.geometry.channels=2",
        "flash.geometry.ways=2",
        "flash.ftl.over_provisioning=60%",
        "flash.buffer.capacity=8MiB",
        "flash.buffer.in_flight=2MiB",
        "flash.precondition.sequential.share=100%",
    ];
    let job = "fio:rw=randwrite,bs=4k,iodepth=32,number_ios=20000,norandommap=1,loops=3";
    let (open, flushed) = (run(job, &small), run(&format!("{job},end_fsync=1"), &small));
    assert!(flash(&flushed).gc_programs > 0, "nothing was collected");
    let foretold = flash(&open).flushed_write_amplification.expect("writes");
    let came = flash(&flushed).write_amplification.expect("writes");
    assert!((foretold / came - 1.0).abs() < 0.02, "{foretold} foretold, {came} came");
    let so_far = flash(&open).write_amplification.expect("writes");
    assert!(came - foretold < came - so_far, "{so_far} so far, {foretold} foretold, {came} came");
    // A window that begins with a full buffer is not charged for what it found there.
    let mut late = Plan::new("pm9a3", &format!("{job},end_fsync=1")).set("flash.buffer.protected=false");
    late = small.iter().fold(late, |plan, set| plan.set(set));
    late.warmup = Some(machine::Warmup::Requests(40_000));
    let late = run_alone(&late).unwrap_or_else(|fault| panic!("{fault}"));
    let f = flash(&late);
    let ftl = f.ftl_write_amplification.expect("programs");
    let own = f.flushed_write_amplification.expect("writes") / ftl;
    assert!(f.write_amplification.expect("writes") > f.flushed_write_amplification.expect("writes"));
    // Hardly a unit is overwritten in the buffer: each write of the window is one program of the host.
    assert!((0.5..=1.001).contains(&own), "{own}");
}
