//! Flash as memory from outside.

mod random;
mod reads;
mod writes;

use crate::direct::{
    Direct, DirectEnergySpec, DirectSpec, Event, Out,
    spec::Transfer,
    testing::{ALL, Rig, small, table_i},
};
use config::{
    StatePower,
    units::{Bytes, Energy, Power},
};
use engine::{EventQueue, Rng, Time};
use mem::dram_cache::{self, DramCache, DramCacheSpec};
use nand::{
    dies::sched::Scheduling,
    planes::spec::{BusSpec, FlashNetwork},
    registers::spec::RegisterNetwork,
};
use net::mesh::MeshSpec;
use proto::memory::{Absent, LINE, MemCommand, PAGE, Stage};

// Energy, against what the part counts for itself.

fn metered() -> DirectSpec {
    let power = Power::new;
    let energy = DirectEnergySpec {
        read: Energy::new(1_003),
        program: Energy::new(90_001),
        erase: Energy::new(400_009),
        transfer: Energy::new(37),
        plane: StatePower { idle: power(500), busy: power(1_700) },
        controllers_on: power(2_000),
    };
    DirectSpec { energy: Some(energy), ..small() }
}

/// Whole and partial writes over few pages, and reads between them: pages leave their registers, log blocks fill up and are merged.
#[test]
fn arrays_and_network_cost_what_they_do() {
    let (mut rig, mut rng) = (Rig::new(&metered()), Rng::stream(3, "direct/energy"));
    for n in 0..3_000 {
        let page = rig.page((n % 4) as u32, rng.below(8) as u32, rng.below(8) as u32);
        let lines = if rng.below(3) == 0 { ALL } else { 1 << rng.below(32) };
        rig.send(rng.below(3) > 0, page, lines, 0);
        for _ in 0..rng.below(40) {
            rig.step();
        }
    }
    while rig.step() {}
    let (now, stats) = (rig.now(), &rig.direct.stats);
    let energy = rig.direct.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    assert!(stats.erases > 0 && stats.fill_reads > 0 && stats.gc_programs > 0, "{stats:?}");
    assert_eq!(energy.of("read"), u128::from(1_003 * stats.senses()));
    assert_eq!(energy.of("program"), u128::from(90_001 * (stats.eviction_programs + stats.gc_programs)));
    assert_eq!(energy.of("erase"), u128::from(400_009 * stats.erases));
    assert_eq!(energy.of("flash network transfer"), u128::from(37 * (stats.bytes_out + stats.bytes_in)));
    assert_eq!(energy.of("planes on"), 4 * 500 * u128::from(now.ps()));
    assert_eq!(energy.of("controllers on"), 2_000 * u128::from(now.ps()));
    // Of every read 3 us and the search of 10 ns, of programs 100 us, of erases 1 ms.
    let work = Time::from_ns(3_010).times(stats.senses())
        + Time::from_us(100).times(stats.eviction_programs + stats.gc_programs)
        + Time::from_ms(1).times(stats.erases);
    assert_eq!(energy.of("planes at work"), 1_200 * u128::from(work.ps()));
}

// What can and what cannot be built.

#[test]
fn table_i_has_its_sizes() {
    let Ok(direct) = Direct::new(&table_i(), 1, LINE) else { panic!("Table I can be built") };
    assert_eq!((direct.controllers(), direct.reach()), (16, 192 << 20));
    // 1,024 planes x 512 data blocks x 384 pages x 4 KiB.
    assert_eq!(direct.capacity(), 768 << 30);
    let controllers: Vec<u16> = (0..32).map(|n| direct.controller_of(n * 4096)).collect();
    assert!(controllers.iter().enumerate().all(|(n, c)| usize::from(*c) == n % 16));
}

#[test]
fn every_policy_builds_and_reads_back() {
    let mut specs = Vec::new();
    for network in RegisterNetwork::all_defaults() {
        for scheduler in Scheduling::all_defaults().into_iter().filter(|s| *s != Scheduling::in_order) {
            for transfer in Transfer::all_defaults() {
                let mut spec = table_i();
                (spec.registers.network, spec.array.scheduler, spec.transfer) =
                    (network.clone(), scheduler.clone(), transfer);
                specs.push(spec);
            }
        }
    }
    let mut bus = table_i();
    bus.network = FlashNetwork::bus(BusSpec::default());
    bus.geometry.ports = 1;
    specs.push(bus);
    assert!(specs.iter().all(|spec| Direct::new(spec, 1, LINE).is_ok()));
}

#[test]
fn what_cannot_be_is_said_with_its_key() {
    let fault = |change: fn(&mut DirectSpec)| {
        let mut spec = small();
        change(&mut spec);
        let fault = Direct::new(&spec, 1, LINE).err().expect("unsound");
        fault.key
    };
    assert_eq!(fault(|s| s.geometry.dies = 0), "geometry.dies");
    assert_eq!(fault(|s| s.geometry.pages = 5_000), "geometry.pages");
    assert_eq!(fault(|s| s.mapping.group = 3), "mapping.group");
    assert_eq!(fault(|s| s.mapping.log_share = 3), "mapping.data_blocks");
    assert_eq!(fault(|s| s.mapping.data_blocks = 10), "mapping.data_blocks");
    assert_eq!(fault(|s| s.mapping.log_filled.clear()), "mapping.log_filled");
    assert_eq!(fault(|s| s.registers.count = 1), "registers.count");
    assert_eq!(fault(|s| s.controller.count = 3), "controller.count");
    assert_eq!(fault(|s| s.network = FlashNetwork::mesh(MeshSpec::default())), "network.mesh.rows");
    assert_eq!(fault(|s| s.network = FlashNetwork::bus(BusSpec::default())), "geometry.ports");
    let wide = |s: &mut DirectSpec| {
        s.network =
            FlashNetwork::mesh(MeshSpec { rows: 1, columns: 2, width: Bytes::new(0), ..MeshSpec::default() });
    };
    assert_eq!(fault(wide), "network.mesh.width");
    for line in [0, 32, 96, 1024, 4096] {
        let fault = Direct::new(&small(), 1, line).err().expect("unsound");
        assert_eq!((fault.key.as_str(), fault.what.contains("64, 128, 256 or 512 B")), ("line", true));
    }
}

/// One share for each application, the last for all further ones; pages are whole.
#[test]
fn log_blocks_are_filled_to_their_application_s_share() {
    let mut spec = small();
    assert_eq!([0, 1, 200].map(|app| spec.log_room(app)), [8, 8, 8]);
    spec.mapping.log_filled = ["25%", "100%", "70%"].map(|share| share.parse().expect("a share")).into();
    // 70 % of 8 pages are 5.6: six are programmed.
    assert_eq!([0, 1, 2, 200].map(|app| spec.log_room(app)), [6, 0, 2, 2]);
}

/// 16 blocks hold 8 data blocks, 4 log blocks and 2 for a merge, but not 10, 5 and 2: the diagnostic says how many fit.
#[test]
fn the_help_says_how_many_data_blocks_fit() {
    let mut spec = small();
    spec.mapping.data_blocks = 10;
    let fault = spec.check().expect_err("17 blocks of 16");
    assert_eq!(fault.help.as_deref(), Some("at most 8 data blocks fit"));
    spec.mapping.data_blocks = 8;
    assert_eq!(spec.check(), Ok(()));
}

// Flash as memory behind a DRAM cache, which asks for whole pages.

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
                    Out::Reclaim { .. } => {}
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

// Log blocks and merges in time.

/// 16 pages of (3.01 + 100) us, three erases of 1 ms.
const MERGE: Time = Time::from_ns(16 * 103_010 + 3 * 1_000_000);

/// A rig whose log blocks have one free page left, and whose plane 0 is programming that page, for application 1.
fn about_to_merge() -> (Rig, Vec<u64>) {
    let mut rig = Rig::new(&small());
    let all = rig.direct.capacity();
    rig.direct.fill_logs(0..all, 1);
    let pages: Vec<u64> = (0..8).map(|n| rig.page(0, 0, n)).collect();
    for page in &pages[..3] {
        rig.send(true, *page, ALL, 1);
    }
    (rig, pages)
}

fn reclaims(rig: &Rig) -> Vec<(Time, bool)> {
    let all = rig.cx.sent.iter();
    all.filter_map(|(time, out)| match out {
        Out::Reclaim { app, begins } => {
            assert_eq!(*app, 1);
            Some((*time, *begins))
        }
        _ => None,
    })
    .collect()
}

/// A write waits for a program; that fills the log block, and the merge takes its pages and its erases.
#[test]
fn a_full_log_block_is_merged() {
    let (mut rig, _) = about_to_merge();
    rig.rest();
    let [(began, true), (ended, false)] = reclaims(&rig)[..] else { panic!("{:?}", reclaims(&rig)) };
    assert_eq!(ended - began, MERGE);
    let stats = &rig.direct.stats;
    assert_eq!((stats.gc_runs, stats.gc_time), (1, MERGE));
    // Both planes of the set move their pages, at the same time.
    let done = (stats.gc_reads, stats.gc_programs, stats.erases, stats.eviction_programs);
    assert_eq!(done, (2 * 16, 2 * 16, 2 * 3, 1));
    // What was in the log block is in a data block again.
    let page = rig.page(0, 1, 3);
    rig.latency(false, page, 1);
    assert_eq!(rig.direct.stats.log_reads, 0);
}

/// A log block of 8 pages that is filled to a share is full after the programs for which it has room: then the merge begins.
/// Three pages fill the plane's two registers, so that every further page has one programmed.
#[test]
fn a_log_block_merges_after_the_programs_that_it_has_room_for() {
    for (share, programs) in [("25%", 6), ("50%", 4), ("75%", 2), ("87.5%", 1)] {
        let mut spec = small();
        spec.mapping.log_filled = vec![share.parse().expect("a share")];
        let mut rig = Rig::new(&spec);
        let (all, left) = (rig.direct.capacity(), spec.log_room(1));
        assert_eq!(left, programs, "8 pages less {share}");
        rig.direct.fill_logs(0..all, left);
        for n in 0..2 + programs - 1 {
            let page = rig.page(0, n % 2, n / 2);
            rig.send(true, page, ALL, 1);
            rig.rest();
        }
        assert_eq!(rig.direct.stats.eviction_programs, u64::from(programs - 1));
        assert_eq!((rig.direct.stats.gc_runs, rig.direct.stats.gc_begun), (0, None), "{share}");
        let page = rig.page(0, 0, 7);
        rig.send(true, page, ALL, 1);
        while rig.direct.stats.gc_begun.is_none() {
            assert!(rig.step(), "{share}: no merge");
        }
        assert_eq!(rig.direct.stats.eviction_programs, u64::from(programs), "{share}");
        assert_eq!(rig.direct.merging(), 1);
        rig.rest();
        let stats = &rig.direct.stats;
        assert_eq!((stats.gc_runs, rig.direct.merging()), (1, 0), "{share}");
        let [(began, true), (ended, false)] = reclaims(&rig)[..] else { panic!("{:?}", reclaims(&rig)) };
        assert_eq!((stats.gc_begun, stats.gc_ended), (Some(began), Some(ended)));
    }
}

/// The owner's commands wait for the end of the merge; others wait for at most one page operation, or one erase.
#[test]
fn a_merge_blocks_its_owner_alone() {
    let (mut rig, pages) = about_to_merge();
    while reclaims(&rig).is_empty() {
        assert!(rig.step());
    }
    let began = reclaims(&rig)[0].0;
    rig.run_until(began + Time::from_us(10));
    let elsewhere = rig.page(3, 0, 0);
    let (owner, other) = (rig.send(false, elsewhere, 1, 1), rig.send(false, elsewhere, 2, 2));
    let same_plane = rig.send(false, pages[7], 1, 2);
    rig.rest();
    let at = |rig: &Rig, tag| rig.done(tag).expect("answered") - began;
    let read = Time::from_ps(3_662_250);
    assert_eq!(at(&rig, other), Time::from_us(10) + read);
    // It is sensed after the page operation that began with the merge.
    assert_eq!(at(&rig, same_plane), Time::from_ns(103_010 + 3_010) + Time::from_ps(642_500));
    // One read came between, and its page had to leave the data register.
    let longer = Time::from_ns(3_010 + 640);
    assert_eq!(reclaims(&rig)[1].0 - began, MERGE + longer);
    assert_eq!(at(&rig, owner), MERGE + longer + read);
    let blocked = rig.direct.tally.reads()[Stage::Reclaim as usize];
    assert_eq!(blocked, u128::from((MERGE + longer - Time::from_us(10)).ps()));
    assert_eq!(rig.direct.stats.blocked, 1);
}

/// Write-backs of the owner pass, except behind one of its commands to the same page.
#[test]
fn write_backs_pass_the_block() {
    let (mut rig, _) = about_to_merge();
    while reclaims(&rig).is_empty() {
        assert!(rig.step());
    }
    let began = rig.now();
    let pages = [rig.page(1, 0, 0), rig.page(1, 0, 1)];
    let blocked = rig.send(true, pages[0], 1, 1);
    for (tag, page) in [(100, pages[0]), (101, pages[1])] {
        let command = MemCommand {
            from: proto::Port::default(),
            tag,
            page,
            lines: 1,
            write: true,
            demand: false,
            app: 1,
            port: 0,
            pc: 0,
            absent: Absent::Wait,
            since: began,
        };
        rig.direct.command(command, &mut rig.cx);
    }
    rig.rest();
    assert!(rig.done(101).expect("answered") < began + Time::from_us(1));
    let order = [rig.done(blocked), rig.done(100)].map(|time| time.expect("answered") - began);
    assert!(order[0] > MERGE && order[1] > order[0], "{order:?}");
}

/// Programs for a log block that is being merged wait; a page for another log block of the plane goes on, and another
/// page leaves its register instead.
#[test]
fn programs_wait_for_the_merge_of_their_log_block_alone() {
    let mut spec = small();
    spec.registers.count = 4;
    let mut rig = Rig::new(&spec);
    let one = rig.page(0, 0, 0);
    rig.direct.fill_logs(one..one + PAGE, 0);
    // Data blocks 0 and 1 share the full log block; 2 has another.
    let full = rig.page(0, 1, 1);
    let other: Vec<u64> = (0..4).map(|n| rig.page(0, 2, n)).collect();
    rig.latency(true, full, ALL);
    rig.latency(true, other[0], ALL);
    rig.latency(true, other[1], ALL);
    let began = rig.now();
    let tag = rig.send(true, other[2], 1, 2);
    rig.rest();
    // The page for the full log block was to go first: the merge has begun with a page operation, then the next page has
    // been programmed.
    let waited = rig.done(tag).expect("answered") - began;
    assert_eq!(waited, Time::from_ps(29_750) + Time::from_ns(103_010 + 100_000));
    assert_eq!((rig.direct.stats.gc_runs, rig.direct.stats.evictions), (1, 2));
    assert_eq!(rig.direct.stats.eviction_programs, 2);
    assert_eq!(rig.direct.registers.lines(full / PAGE), 0, "programmed after the merge");
}
