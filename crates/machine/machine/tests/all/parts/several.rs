//! Several parts of a kind in one machine.

use super::{Bench, SMALL, figure};

const HEAD: &str = "description = 'mine'\n[host]\ninherits = 'd16'\n[sim]\ninherits = 'd16'\n";

fn array(count: u32, chunk: &str) -> String {
    format!(
        "{HEAD}[ssd]\nkind = 'flash'\ncount = {count}\ninherits = 'd16.flash'{SMALL}\
         [array]\nkind = 'stripe'\ndrives = 'ssd'\nchunk = '{chunk}'\nsubmit = '0us'\n"
    )
}

/// Four drives serve four times as many random reads as one, as long as each has a queue as deep: a bound, and a stripe of equal
/// drives comes near it.
#[test]
fn a_stripe_of_four_serves_four_times_as_much() {
    let job = |depth: u32| format!("fio:rw=randread,bs=4k,iodepth={depth},number_ios=20000,norandommap=1");
    let one = Bench::new(&array(1, "64KiB")).run(&[&job(64)]);
    let four = Bench::new(&array(4, "64KiB")).run(&[&job(256)]);
    let iops = |document| figure(document, "/io/read/iops");
    let times = iops(&four) / iops(&one);
    assert!((3.6..=4.05).contains(&times), "{times} times as many");
    // Commands of a chunk or less are one command of one drive, and spread evenly.
    assert_eq!(figure(&four, "/stripe/0/parts"), figure(&four, "/stripe/0/commands"));
    for member in 0..4 {
        let share =
            figure(&four, &format!("/stripe/0/members/{member}/bytes")) / figure(&four, "/io/read/bytes");
        assert!((share - 0.25).abs() < 0.01, "member {member}: {share}");
    }
}

/// A request of 256 KiB over chunks of 64 KiB is a command for each of four drives; all of its bytes come to them.
#[test]
fn a_large_request_goes_to_all_members() {
    let document = Bench::new(&array(4, "64KiB")).run(&["fio:rw=read,bs=256k,iodepth=4,number_ios=40"]);
    assert_eq!(figure(&document, "/stripe/0/commands"), 40.0);
    assert_eq!(figure(&document, "/stripe/0/parts"), 160.0);
    let units: f64 = (0..4).map(|drive| figure(&document, &format!("/flash/{drive}/reads/host"))).sum();
    assert_eq!(units, 40.0 * 64.0);
    assert!(figure(&document, "/stripe/0/straggling_ns") >= 0.0);
}

/// Writes with barriers: a flush waits for every drive, and trims leave nothing behind.
#[test]
fn every_kind_of_request_goes_through_a_stripe() {
    let bench = Bench::new(&array(3, "4KiB"));
    bench.run(&["fio:rw=randwrite,bs=12k,iodepth=8,fsync=8,number_ios=600"]);
    bench.run(&["fio:rw=randtrim,bs=64k,iodepth=4,number_ios=60"]);
    bench
        .run(&["fio:rw=randrw,bs=4k,iodepth=8,number_ios=600", "fio:rw=read,bs=32k,iodepth=2,number_ios=60"]);
}

/// A GPU and a server in one machine, with a drive that the one reaches from inside and the other as a host: both do what they do, and
/// each is slower beside the other than alone.
#[test]
fn a_gpu_and_a_server_share_a_drive() {
    let small = "[flash.geometry]\nchannels = 2\nways = 1\nplanes = 2\nblocks = 256\npages = 16\n\
        [flash.ftl]\nover_provisioning = '25%'\n[flash.ftl.gc]\nstart = 3\nstop = 4\nhard = 1\n\
        [gpu.l1]\nsets = 1\nways = 1\n[l2]\nsets = 4\nways = 4\n[memory.initiator.gather]\ncapacity = '32KiB'\n\
        [cpu]\ncores = 4\nfill_jobs = 20000\nwarmup = { fixed = { jobs = 0 } }\n[cpu.load]\njobs = 300\n\
        [fabric.mesh]\nrows = 2\ncolumns = 2\n[cpu_l2]\nbanks = 4\nsets = 4\n[swap]\nmemory = '1MiB'\nfree = '64KiB'\n";
    let bench = Bench::new(&format!("inherits = 'mqms-server'\n{small}"));
    let (program, service) = ("gpu=back:n=4096", "cpu=tatp:size=32MiB,work=1000");
    let both = bench.run(&[program, service]);
    let (gpu, cpu) = (bench.run(&[program]), bench.run(&[service]));
    assert_eq!((gpu.cpu.len(), cpu.gpu.len(), both.gpu.len(), both.cpu.len()), (0, 0, 1, 1));
    for path in ["/gpu/0/warp_instructions", "/gpu/0/applications/0/footprint_bytes"] {
        assert_eq!(figure(&both, path), figure(&gpu, path), "{path}");
    }
    assert_eq!(figure(&both, "/cpu/0/jobs"), 300.0);
    assert!(
        figure(&both, "/cpu/0/memory/swap/faults") > 0.0 && figure(&both, "/io/flows/0/read/requests") > 0.0
    );
    assert!(figure(&both, "/gpu/0/ipc") < figure(&gpu, "/gpu/0/ipc"), "the GPU does not feel the server");
    let service = "/cpu/0/service_ns/mean";
    assert!(figure(&both, service) > figure(&cpu, service), "the server does not feel the GPU");
}

/// Programs of two GPUs with nothing in common but the clock: each does exactly what it does alone.
#[test]
fn two_gpus_with_memories_of_their_own_do_not_meet() {
    let second = "[mmu2]\nkind = 'mmu'\ninherits = 'ideal.mmu'\n[network2]\nkind = 'network'\ninherits = 'ideal.network'\n\
        [shared2]\nkind = 'l2'\ninherits = 'ideal.l2'\nmemory = 'dram2'\n[dram2]\nkind = 'memory'\ninherits = 'ideal.memory'\n\
        [gpu2]\nkind = 'gpu'\ninherits = 'ideal.gpu'\nmmu = 'mmu2'\nnetwork = 'network2'\nl2 = 'shared2'\n";
    let links = "[gpu]\nmmu = 'mmu'\nnetwork = 'network'\nl2 = 'l2'\n[l2]\nmemory = 'memory'\n";
    let bench = Bench::new(&format!("inherits = 'ideal'\n{links}{second}"));
    let both = bench.run(&["gpu=gaus:n=48", "gpu2=bfs1:scale=8"]);
    let (first, other) = (bench.run(&["gpu=gaus:n=48"]), bench.run(&["gpu2=bfs1:scale=8"]));
    let same = |path: &str, one: &_, at: usize| {
        assert_eq!(
            figure(&both, &path.replace('*', &at.to_string())),
            figure(one, &path.replace('*', "0")),
            "{path}"
        );
    };
    for path in
        ["/gpu/*/ipc", "/gpu/*/read_latency_ns/mean", "/gpu/*/memory/row_hit_share", "/gpu/*/l2/hit_share"]
    {
        same(path, &first, 0);
        same(path, &other, 1);
    }
    assert!(figure(&both, "/breakdown_ns/gpu.load/memory") > 0.0, "each has its own");
}
