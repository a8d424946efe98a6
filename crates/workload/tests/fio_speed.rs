//! What a request costs. Run with `cargo test --release -p nandscape-workload --test fio_speed -- --ignored --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use kernel::Time;
use workload::fio::parse_inline;
use workload::synth::{Generator, Poll};

/// Nanoseconds a request, the best of five runs of a million.
fn cost(options: &str) -> f64 {
    let job = parse_inline(options).unwrap().jobs.remove(0).resolve(1 << 42).unwrap();
    let mut generator = Generator::new(job, 1);
    generator.start(Time::ZERO, Time::ZERO);
    let mut one = || {
        let start = Instant::now();
        for _ in 0..1_000_000 {
            let Poll::Issue(request) = black_box(&mut generator).poll(black_box(Time::from_ns(1)), 0) else {
                panic!("{options}: nothing to issue")
            };
            black_box(request);
        }
        start.elapsed().as_nanos() as f64 / 1e6
    };
    (0..5).map(|_| one()).fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement"]
fn a_request_costs_a_handful_of_nanoseconds() {
    for (options, most) in [
        ("rw=read,bs=4k", 30.0),
        ("rw=randread,bs=4k", 30.0),
        ("rw=randread,bs=4k,size=3t", 30.0),
        ("rw=randread,bs=4k,norandommap", 30.0),
        ("rw=randrw,bs=4k,norandommap,rwmixread=70", 40.0),
        ("rw=randread,bs=4k,random_distribution=zipf:0.99,size=4t", 80.0),
        ("rw=randread,bssplit=4k/60:64k/40,norandommap,size=4t", 60.0),
    ] {
        let cost = cost(options);
        println!("{cost:6.1} ns  {options}");
        assert!(cost < most, "{options}: {cost} ns");
    }
}
