//! scratch
use flash::backend::{
    BackendPolicy, MultiPlane, Suspend, arbiter, sched,
    timing::{Timing, Wear},
};
use flash::device::{DeviceParts, HostParams, NvmeParams};
use flash::ftl::{
    Ftl, Thresholds, alloc::striped::Striped, functional::FunctionalWriter, gc::greedy::Greedy,
};
use flash::geometry::*;
use kernel::{Rng, Time};
use machine::*;
use proto::*;
use workload::inject::*;

struct Random {
    rng: Rng,
    left: u64,
    depth: u32,
    pages: u64,
    read: u64,
    bytes: u64,
    seq: Option<u64>,
}
impl Source for Random {
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, config::Diagnostic> {
        if self.left == 0 {
            return Ok(Next::Done);
        }
        if outstanding >= self.depth {
            return Ok(Next::Blocked);
        }
        self.left -= 1;
        let op = if self.read == 100 || (self.read > 0 && self.rng.below(100) < self.read) {
            IoOp::Read
        } else {
            IoOp::Write
        };
        let n = self.pages * 4096 / self.bytes;
        let at = match &mut self.seq {
            Some(s) => {
                *s += 1;
                *s % n
            }
            None => self.rng.below(n),
        };
        Ok(Next::Issue(IoRequest {
            at: now,
            op,
            offset: at * self.bytes,
            bytes: self.bytes,
            flow: 0,
            fua: false,
        }))
    }
    fn completed(&mut self, _: Time, _: IoOp) {}
    fn flows(&self) -> Vec<String> {
        vec!["a".into()]
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let read: u64 = args[1].parse().unwrap();
    let depth: u32 = args[2].parse().unwrap();
    let n: u64 = args[3].parse().unwrap();
    let fill = &args[4];
    let arb = args.get(5).map_or("fifo", |s| s.as_str());
    let bytes: u64 = args.get(6).map_or(4096, |s| s.parse().unwrap());
    let seq = (bytes > 4096).then_some(0);
    let geo = Geometry::new(Shape {
        channels: 8,
        ways: 4,
        dies: 1,
        planes: 2,
        blocks: 512,
        pages: 128,
        page_bytes: 4096,
        unit_bytes: 4096,
        program_pages: 1,
        reclaim: Reclaim::Block,
        stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
    });
    let logical = 3690987;
    let mut ftl =
        Ftl::new(geo, logical, 1, false, Thresholds { start: 25, stop: 26, hard: 2 }, Box::new(Greedy));
    let used = logical * 9 / 10;
    let t = std::time::Instant::now();
    match fill.as_str() {
        "seq" => ftl.assume_sequential(used),
        "steady" => {
            ftl.assume_sequential(used);
            let mut rng = Rng::stream(1, "fill");
            let mut w = FunctionalWriter::new(&ftl);
            for _ in 0..used * 2 {
                let l = rng.below(used);
                let g = ftl.geo.group_at(l);
                w.write(&mut ftl, g, Lpn(l)).unwrap();
            }
        }
        _ => {}
    }
    println!(
        "fill {:?} moves {} waf {:.3}",
        t.elapsed(),
        ftl.counters.moves,
        1.0 + ftl.counters.moves as f64 / ftl.counters.host_commits.max(1) as f64
    );
    let us = Time::from_us;
    let timing = Timing {
        read: vec![us(50)],
        program: vec![us(600)],
        passes: 1,
        one_shot: false,
        erase: Time::from_ms(3),
        page_type: vec![0; 128],
        wear_ppm: Wear::default(),
        read_command: Time::from_ns(290),
        program_command: Time::from_ns(290),
        erase_command: Time::from_ns(290),
        data_out: Time::from_ns(30),
        data_in: Time::from_ns(70),
        rate: net::Rate::new(800_000_000),
        pages_per_unit: 1,
        program_pages: 1,
    };
    let arbiter: Box<dyn arbiter::Arbiter> = match arb {
        "data" => Box::new(arbiter::data_first::DataFirst),
        "cmd" => Box::new(arbiter::command_first::CommandFirst),
        _ => Box::new(arbiter::fifo::Fifo),
    };
    let mp = if bytes > 4096 { MultiPlane::SamePage } else { MultiPlane::Off };
    let policy = BackendPolicy {
        scheduler: Box::new(sched::oldest::Oldest),
        arbiter,
        multi_plane: mp,
        suspend: Suspend {
            program: false,
            erase: false,
            latency: us(0),
            resume: us(0),
            least: us(0),
            limit: 0,
        },
        fold: true,
    };
    let host = HostParams {
        link: net::pcie::Link::new(16_000_000_000, 0, Time::from_ns(100)),
        cores: 1,
        command_cost: Time::ZERO,
        unit_cost: Time::ZERO,
        nvme: Some(NvmeParams {
            queues: 1,
            depth: 4096,
            in_controller: 65536,
            arbitration: flash::hostif::nvme::Arbitration::RoundRobin { burst: 1 },
            doorbell: Time::ZERO,
            fetch: Time::ZERO,
            interrupt: Time::ZERO,
        }),
        fold: true,
    };
    let device = flash::Device::new(DeviceParts {
        ftl,
        allocator: Box::new(Striped),
        timing,
        policy,
        host,
        gc_window: 8,
        copy_back: false,
        placements: 1,
    });
    let inj = Injector::new(
        vec![Box::new(Random { rng: Rng::stream(7, "x"), left: n, depth, pages: used, read, bytes, seq })],
        1,
        HostCost::default(),
    );
    let mut m = Machine::new(device, inj, None);
    let t = std::time::Instant::now();
    let end = m.run(&std::sync::atomic::AtomicBool::new(false), |_| {});
    let el = t.elapsed();
    let lat = |o: &OpStats| o.latency.mean().unwrap_or(0.0) / 1e6;
    println!(
        "{end:?} {:?} {:.3} M/s {:.1} ns/ev ev/io {:.2} read {:.2} us write {:.2} us sim {} iops {:.0}",
        el,
        n as f64 / el.as_secs_f64() / 1e6,
        el.as_nanos() as f64 / m.events as f64,
        m.events as f64 / n as f64,
        lat(&m.injector.flows[0].read),
        lat(&m.injector.flows[0].write),
        m.now(),
        n as f64 / m.now().as_s_f64()
    );
    let c = &m.device.backend.counters;
    println!(
        "{:?} gc {} waf {:.3}",
        c,
        m.device.stats.gc_runs,
        (c.units[5] + c.units[8]) as f64 / c.units[5].max(1) as f64
    );
}
