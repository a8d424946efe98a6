//! Flash as memory behind a DRAM cache, which asks for whole pages.

use crate::direct::testing::small;
use crate::direct::{Direct, Event, Out};
use engine::{EventQueue, Rng, Time};
use mem::dram_cache::{self, DramCache, DramCacheSpec};
use proto::memory::{Absent, MemCommand, PAGE};

engine::events! {
    enum Ev {
        Cache(dram_cache::Event),
        Flash(Event),
    }
}

/// The queue as a part sees it that sends messages `O`.
struct Port<'a, O> {
    queue: &'a mut EventQueue<Ev>,
    sent: &'a mut Vec<O>,
}

engine::context! {
    Port<'_, dram_cache::Out>: Cx<dram_cache::Event, dram_cache::Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Cache(event),
    out: |me, out| me.sent.push(out),
}

engine::context! {
    Port<'_, Out>: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Flash(event),
    out: |me, out| me.sent.push(out),
}

struct Bench {
    cache: DramCache,
    flash: Direct,
    queue: EventQueue<Ev>,
    from_cache: Vec<dram_cache::Out>,
    from_flash: Vec<Out>,
    /// Answers by tag.
    answers: Vec<u32>,
}

impl Bench {
    fn new(line: u64) -> Bench {
        let spec: DramCacheSpec = toml::from_str(include_str!("dram_cache.toml")).expect("a valid cache");
        let mut flash = Direct::new(&small(), 1, line).expect("a sound spec");
        flash.attach_shadow();
        Bench {
            cache: DramCache::new(&spec, line).expect("a sound spec"),
            flash,
            queue: EventQueue::new(),
            from_cache: Vec::new(),
            from_flash: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn send(&mut self, command: MemCommand) {
        self.cache.command(command, &mut Port { queue: &mut self.queue, sent: &mut self.from_cache });
        self.settle();
    }

    fn settle(&mut self) {
        while !self.from_cache.is_empty() || !self.from_flash.is_empty() {
            for out in std::mem::take(&mut self.from_cache) {
                match out {
                    dram_cache::Out::Done(command) => self.answers.push(command.tag),
                    dram_cache::Out::Backing(command) => self
                        .flash
                        .command(command, &mut Port { queue: &mut self.queue, sent: &mut self.from_flash }),
                    dram_cache::Out::Arrived { .. } => {}
                    dram_cache::Out::Submit(command) => panic!("there is no drive: {command:?}"),
                }
            }
            for out in std::mem::take(&mut self.from_flash) {
                match out {
                    Out::Done(command) => self
                        .cache
                        .backed(command, &mut Port { queue: &mut self.queue, sent: &mut self.from_cache }),
                    Out::Help(_) | Out::Reclaim { .. } => {}
                    Out::Park { .. } => panic!("nobody would take it"),
                }
            }
        }
    }

    fn step(&mut self) -> bool {
        match self.queue.pop() {
            None => return false,
            Some(Ev::Cache(event)) => {
                self.cache.handle(event, &mut Port { queue: &mut self.queue, sent: &mut self.from_cache });
            }
            Some(Ev::Flash(event)) => {
                self.flash.handle(event, &mut Port { queue: &mut self.queue, sent: &mut self.from_flash });
            }
        }
        self.settle();
        true
    }
}

/// Pages come and go until log blocks are merged; every access is answered, and flash gives back what it was given.
#[test]
fn pages_come_and_go_by_the_memory_protocol() {
    for line in [64, 128] {
        let (mut bench, mut rng) = (Bench::new(line), Rng::stream(line, "test"));
        let accesses = 3_000;
        for tag in 0..accesses {
            let page = rng.below(96) * PAGE;
            bench.send(MemCommand {
                from: proto::Port::default(),
                tag,
                page,
                lines: 1 << rng.below(PAGE / line),
                write: rng.below(2) == 0,
                demand: true,
                app: 0,
                port: 0,
                pc: 1,
                absent: if rng.below(2) == 0 { Absent::Wait } else { Absent::Signal },
                since: bench.queue.now(),
            });
            while bench.cache.outstanding() > 12 {
                assert!(bench.step(), "deadlock");
            }
        }
        while bench.step() {}
        bench.answers.sort_unstable();
        assert_eq!(bench.answers, (0..accesses).collect::<Vec<_>>());
        assert_eq!((bench.cache.outstanding(), bench.flash.outstanding()), (0, 0));
        for check in bench.flash.checks() {
            assert!(check.ok, "{}: {}", check.name, check.detail);
        }
        let (cache, flash) = (bench.cache.stats, &bench.flash.stats);
        assert_eq!((flash.reads, flash.writes), (cache.fetches, cache.write_backs));
        assert_eq!(flash.bytes_in, cache.write_backs * PAGE, "whole pages");
        assert!(cache.reclaims > 0 && flash.register_reads > 0 && flash.gc_runs > 0, "{cache:?} {flash:?}");
        let (changed, found) = bench.cache.changed_pages();
        assert_eq!(changed, found);
        assert!(bench.queue.now() > Time::ZERO);
    }
}
