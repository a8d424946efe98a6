//! A drive behind SATA: 32 commands at once, and one wire for both ways.

use machine::Loaded;
use machine::run::{Plan, run_alone};
use serde_json::Value;

const LINK: &str = "flash.host.link={ sata = { generation = 3, latency = \"100ns\" } }";
const AHCI: &str = "flash.host.ahci={ slots = 32, command = \"500ns\", interrupt = \"2us\" }";

/// The flash of a PM9A3 behind SATA in place of PCI Express.
fn run(set: &[&str], job: &str) -> Value {
    let plan = Plan::new("pm9a3", &format!("fio:{job}")).set(LINK).set(AHCI);
    let plan = set.iter().fold(plan, |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{set:?}, {job}: {e}"));
    assert!(document.ok, "{set:?}, {job}: {:?}", document.checks);
    serde_json::to_value(document).expect("a document has a JSON form")
}

fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found}, not {expected}");
}

/// Time of so many frames of so many Dwords in all: 8 more around each, 254 of 256 of 600 MB/s, four latencies of 100 ns a frame.
fn wire_ns(frames: f64, dwords: f64) -> f64 {
    (dwords + 8.0 * frames) * 4.0 / (0.6 * 254.0 / 256.0) + frames * 400.0
}

/// What finds no slot waits at the host: 64 outstanding are as good as 32, and with four slots as good as four.
#[test]
fn more_than_the_slots_bring_nothing() {
    let iops = |set: &[&str], depth: u32| {
        let document = run(set, &format!("rw=randread,bs=4k,iodepth={depth},number_ios=20000"));
        (figure(&document, "/io/read/iops"), figure(&document, "/io/read/slat_ns/mean"))
    };
    let ((at_4, _), (at_32, wait_32), (at_64, wait_64)) = (iops(&[], 4), iops(&[], 32), iops(&[], 64));
    near(at_64, at_32, 0.002);
    assert!(at_4 < 0.9 * at_32, "{at_4}, {at_32}");
    assert_eq!(wait_32, 0.0);
    // Half of them wait, each as long as 32 take.
    near(wait_64, 32.0 / at_64 * 1e9, 0.01);
    near(iops(&["flash.host.ahci.slots=4"], 64).0, at_4, 0.002);
}

/// A 4 KiB read: command, its answer, DMA Setup, Data, Set Device Bits.
#[test]
fn small_reads_are_at_the_rate_of_their_frames() {
    let document = run(&[], "rw=randread,bs=4k,iodepth=32,number_ios=20000");
    let each = wire_ns(5.0, 5.0 + 5.0 + 7.0 + 1025.0 + 2.0);
    near(figure(&document, "/io/read/iops"), 1e9 / each, 0.01);
    let busy = figure(&document, "/flash/0/utilisation/link");
    assert!(busy > 0.98 && busy <= 1.0, "{busy}");
}

/// 128 KiB: eight pages of 16 KiB with a DMA Setup and two Data FIS each; a write has one DMA Setup, and DMA Activate before all but
/// the first of 16. Half of each share the wire, and it is busy for the sum.
#[test]
fn large_requests_share_one_wire() {
    let command = (3.0, 5.0 + 5.0 + 2.0);
    let read = wire_ns(24.0 + command.0, 8.0 * (7.0 + 2.0 * 2049.0) + command.1);
    let write = wire_ns(32.0 + command.0, 7.0 + 16.0 * 2049.0 + 15.0 + command.1);
    let rate = |ns: f64| 131_072.0 / ns * 1e9;
    let all = "/io/all/bandwidth_bytes_per_s";
    for (kind, expected) in [
        ("randread", rate(read)),
        ("randwrite", rate(write)),
        ("randrw,rwmixread=50", rate((read + write) / 2.0)),
    ] {
        let document = run(&[], &format!("rw={kind},bs=128k,iodepth=32,number_ios=4000"));
        near(figure(&document, all), expected, 0.02);
        let busy = figure(&document, "/flash/0/utilisation/link");
        assert!(busy > 0.97 && busy <= 1.0, "{kind}: {busy}");
    }
    near(rate(read), 562.6e6, 0.001);
}

/// A link that sends both ways at once has no share of its own.
#[test]
fn only_half_duplex_is_told() {
    let plan = Plan::new("pm9a3", "fio:rw=randread,bs=4k,number_ios=10");
    let document =
        serde_json::to_value(run_alone(&plan).expect("it runs")).expect("a document has a JSON form");
    assert!(document.pointer("/flash/0/utilisation/die").is_some());
    assert_eq!(document.pointer("/flash/0/utilisation/link"), None);
}

#[test]
fn links_and_queues_that_do_not_go_together_are_refused() {
    for (set, key, said) in [
        (vec![AHCI], "flash.host.ahci", "this link is no SATA link"),
        (vec![LINK], "flash.host.nvme", "no NVMe queues over SATA"),
        (vec![LINK, AHCI, "flash.host.ahci.slots=33"], "flash.host.ahci.slots", "allowed are 1 to 32"),
        (
            vec!["flash.host.link={ sata = { generation = 4, latency = \"0ns\" } }", AHCI],
            "flash.host.link.sata.generation",
            "allowed are 1 to 3",
        ),
        (
            vec!["flash.host.link.pcie.flow_control=51%"],
            "flash.host.link.pcie.flow_control",
            "allowed are 0 % to 50 %",
        ),
    ] {
        let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
        let told = Loaded::load("pm9a3", &set).map(|_| ()).expect_err("it is refused");
        assert!(told.also.is_empty(), "{told}");
        let told = told.to_string();
        assert!(told.contains(key) && told.contains(said), "no `{said}` of {key} in\n{told}");
    }
    // In one file, none is on top.
    let text = "inherits = 'pm9a3'\n[flash.host]\nlink = { sata = { generation = 3, latency = '0ns' } }\n\
                ahci = { slots = 32, command = '0ns', interrupt = '0ns' }\nnvme.queues = 4\n";
    let told = Loaded::from_text("mine.toml", text, &[]).map(|_| ()).expect_err("it is refused");
    assert!(told.also.is_empty() && told.to_string().contains("`nvme` or `ahci`, not both"), "{told}");
}

/// What `inherits` brought is replaced, as an alternative of a choice is.
#[test]
fn a_queue_replaces_one_that_is_inherited() {
    let text = "inherits = 'pm9a3'\n[flash.host]\nlink = { sata = { generation = 3, latency = '0ns' } }\n\
                ahci = { slots = 32, command = '0ns', interrupt = '0ns' }\n";
    let loaded = Loaded::from_text("mine.toml", text, &[]).expect("it loads");
    let host = &loaded.drive().expect("a drive").flash.host;
    assert!(host.nvme.is_none());
    assert_eq!(host.queues(), Some((1, 32)));
}
