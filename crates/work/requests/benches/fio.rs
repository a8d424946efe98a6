//! What drawing a request costs: `cargo bench -p nandscape-requests --bench fio`.

use std::hint::black_box;
use std::time::Instant;

use engine::Time;
use requests::fio::parse_inline;
use requests::synth::{Generator, Poll};

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

fn main() {
    for options in [
        "rw=read,bs=4k",
        "rw=randread,bs=4k",
        "rw=randread,bs=4k,size=3t",
        "rw=randread,bs=4k,norandommap",
        "rw=randrw,bs=4k,norandommap,rwmixread=70",
        "rw=randread,bs=4k,random_distribution=zipf:0.99,size=4t",
        "rw=randread,bssplit=4k/60:64k/40,norandommap,size=4t",
    ] {
        println!("{:6.1} ns  {options}", cost(options));
    }
}
