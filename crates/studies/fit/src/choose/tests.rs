//! Tests of the choices made from some points.

use super::*;

fn base() -> Base {
    Base::of(&machine::load("pm9a3", &[]).unwrap(), "pm9a3").unwrap()
}

fn point(text: &str) -> Point {
    Point::parse("--point", text).unwrap()
}

fn chosen(texts: &[&str]) -> Vec<(Knob, f64)> {
    let points: Vec<Point> = texts.iter().map(|text| point(text)).collect();
    let chosen = choose(&points, &base(), false, false).unwrap();
    chosen.targets.iter().map(|target| (target.knob, target.figure)).collect()
}

const IDLE: &str = "rw=randread,bs=4k,iodepth=1,clat=80us";

#[test]
fn idle_latency_is_the_cells_and_saturation_the_cores() {
    assert_eq!(chosen(&[IDLE]), [(Knob::Read, 80.0)]);
    let many = "rw=randread,bs=4k,iodepth=64,numjobs=4,iops=800k";
    assert_eq!(chosen(&[many, IDLE]), [(Knob::Command, 8e5), (Knob::Read, 80.0)]);
    // A few in flight do not saturate.
    assert_eq!(chosen(&["rw=randread,bs=4k,iodepth=8,iops=90k", IDLE]), [(Knob::Read, 80.0)]);
    let writes = ["rw=randwrite,bs=4k,iodepth=32,iops=200k", "rw=randwrite,bs=4k,iodepth=64,iops=90k,worn"];
    assert_eq!(
        chosen(&[IDLE, writes[0], writes[1]]),
        [(Knob::Read, 80.0), (Knob::Write, 2e5), (Knob::Moved, 9e4)]
    );
}

#[test]
fn a_thread_that_others_outdo_is_its_own_limit() {
    let one = "rw=randread,bs=4k,iodepth=128,iops=300k";
    let several = "rw=randread,bs=4k,iodepth=128,numjobs=4,iops=750k";
    assert_eq!(
        chosen(&[IDLE, one, several]),
        [(Knob::Thread, 3e5), (Knob::Command, 7.5e5), (Knob::Read, 80.0)]
    );
    let alike = "rw=randread,bs=4k,iodepth=128,numjobs=4,iops=310k";
    assert_eq!(chosen(&[IDLE, one, alike]), [(Knob::Command, 3.1e5), (Knob::Read, 80.0)]);
}

#[test]
fn a_thread_without_rest_is_the_limit() {
    let busy = Point { busy: Some(0.99), ..point("rw=randread,bs=4k,iodepth=128,iops=300k") };
    let points = [point(IDLE), busy, point("rw=read,bs=4k,iodepth=1,clat=11us")];
    let knobs = |set| -> Vec<Knob> {
        choose(&points, &base(), false, set).unwrap().targets.iter().map(|target| target.knob).collect()
    };
    assert_eq!(knobs(false), [Knob::Thread, Knob::Command, Knob::Read]);
    // What the user has said of the host stays.
    assert_eq!(knobs(true), [Knob::Command, Knob::Read]);
}

#[test]
fn what_is_held_against_a_fit_chooses_nothing() {
    let held = Point { held: true, ..point("rw=randread,bs=4k,iodepth=64,iops=500k") };
    let chosen = choose(&[point(IDLE), held], &base(), false, false).unwrap();
    assert_eq!(chosen.targets.len(), 1);
}

#[test]
fn what_is_no_ssd_is_refused() {
    let fault = |text: &str| choose(&[point(text)], &base(), false, false).unwrap_err().what;
    assert!(fault("rw=randread,bs=4k,iodepth=1,clat=8ms").contains("takes 8.0 ms: that is not an SSD"));
    assert!(fault("rw=randread,bs=4k,iodepth=1,clat=2us").contains("less than flash takes to sense a page"));
    assert!(fault("rw=randread,bs=4k,iodepth=4,clat=80us").contains("a point of a random read at depth 1"));
}

#[test]
fn what_passes_between_requests_is_the_threads() {
    let thread = |texts: &[&str]| {
        let points: Vec<Point> = texts.iter().map(|text| point(text)).collect();
        choose(&points, &base(), false, false).unwrap().thread.map(|(us, _)| us)
    };
    // 100 us a request, 90 of them its latency.
    let idle = "rw=randread,bs=4k,iodepth=1,clat=90us,iops=10k";
    assert!((thread(&[idle]).unwrap() - 10.0).abs() < 1e-9);
    assert_eq!(thread(&[IDLE]), None);
    // A thread that has 250,000 a second needs 4 us for each at most.
    assert!((thread(&[idle, "rw=read,bs=4k,iodepth=32,iops=250k"]).unwrap() - 4.0).abs() < 1e-9);
    // One that needs 10 us has 100,000 a second: where it has them it is the limit, and where it has less, the drive
    // is.
    assert_eq!(
        chosen(&[idle, "rw=randread,bs=4k,iodepth=32,iops=99k"]),
        [(Knob::Thread, 99e3), (Knob::Read, 90.0)]
    );
    assert_eq!(
        chosen(&[idle, "rw=randread,bs=4k,iodepth=32,iops=60k"]),
        [(Knob::Command, 60e3), (Knob::Read, 90.0)]
    );
    // Where figures of saturation tell, they tell more.
    let several =
        ["rw=randread,bs=4k,iodepth=128,iops=300k", "rw=randread,bs=4k,iodepth=128,numjobs=4,iops=750k"];
    assert_eq!(thread(&[idle, several[0], several[1]]), None);
}

/// Where a drive works on writes after it has acknowledged them, saturation says how long that work takes, an idle
/// write how long it waits, and a percentile in the middle how much batches differ.
#[test]
fn work_that_comes_later_is_what_saturates() {
    let points = [
        IDLE,
        "rw=randwrite,bs=4k,iodepth=1,clat=40us,p99=90us",
        "rw=randwrite,bs=4k,iodepth=32,iops=50k,p99=900us",
        "rw=randwrite,bs=4k,iodepth=16,clat=350us,p99=600us",
        "rw=randwrite,bs=4k,iodepth=2,numjobs=4,clat=150us,p99=310us",
        "rw=randwrite,bs=4k,iodepth=8,clat=150us,p99=300us",
    ];
    let targets = |like: &str| -> Vec<(Knob, f64, f64)> {
        let base = Base::of(&machine::load(like, &[]).unwrap(), like).unwrap();
        let chosen = choose(&points.map(point), &base, false, false).unwrap();
        chosen.targets.iter().skip(1).map(|target| (target.knob, target.figure, target.guess)).collect()
    };
    assert_eq!(targets("pm9a3"), [(Knob::Write, 5e4, 20.0)]);
    let later = [(Knob::Write, 5e4, 20.0), (Knob::Acknowledge, 40.0, 36.4), (Knob::Spread, 300.0, 0.31)];
    assert_eq!(targets("d3-s4610"), later);
}
