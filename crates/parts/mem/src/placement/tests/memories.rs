//! Placement in front of DRAM, and of a DRAM cache over slow storage, which answers without data where it may.

use super::*;
use crate::dram::{self, Dram, DramSpec};
use crate::dram_cache::{self, DramCache, DramCacheSpec};
use engine::Rng;

const DRAM: &str = r#"
    controllers = 1
    interleave = "8256B"
    latency = "0ns"
    bus = { width = 64, rate = "667MT/s", burst = 8 }
    banks = { count = 16, row = "8256B", hash = true }
    scheduler = "fr_fcfs"
    [timing]
    rcd = "14ns"
    cl = "0ns"
    cwl = "0ns"
    rp = "14ns"
    ras = "32ns"
    ccd = "0ns"
    rrd = "5ns"
    faw = "30ns"
    wr = "15ns"
    wtr = "7.5ns"
    rtp = "7.5ns"
    turnaround = "2ns"
"#;

const CACHE: &str = r#"
    sets = 4
    ways = 2
    replacement = "lru"
    evict_buffer = 2
    partition = "flat"
    backing = { fixed = { read = "3us", write = "5us" } }
    frontside = { clock = "2GHz", command = 1, queue = 16 }
    backside = { clock = "2GHz", command = 3, burst = 8 }
    misses = { sets = 4, ways = 8 }
"#;

engine::events! {
    enum Ev {
        Placement(Event),
        Dram(dram::Event),
        Cache(dram_cache::Event),
    }
}

/// Queue as seen by a component that sends messages `O`.
struct Wire<'a, O> {
    queue: &'a mut EventQueue<Ev>,
    sent: &'a mut Vec<O>,
}

engine::context! {
    Wire<'_, Out>: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Placement(event),
    out: |me, out| me.sent.push(out),
}

engine::context! {
    Wire<'_, dram::Out>: Cx<dram::Event, dram::Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Dram(event),
    out: |me, out| me.sent.push(out),
}

engine::context! {
    Wire<'_, dram_cache::Out>: Cx<dram_cache::Event, dram_cache::Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Cache(event),
    out: |me, out| me.sent.push(out),
}

struct Machine {
    queue: EventQueue<Ev>,
    placement: Placement,
    dram: Dram,
    cache: DramCache,
    from_placement: Vec<Out>,
    from_dram: Vec<dram::Out>,
    from_cache: Vec<dram_cache::Out>,
    done: Vec<(Time, MemCommand)>,
    /// Pages that have come into the cache, as the caches in front know them.
    arrived: Vec<(Time, u64)>,
}

/// `$part.$call(.., cx)`, with a context of its own.
macro_rules! tell {
    ($machine:ident, $part:ident, $sent:ident, $call:ident, $($argument:expr),+) => {
        $machine.$part.$call($($argument,)+ &mut Wire { queue: &mut $machine.queue, sent: &mut $machine.$sent })
    };
}

impl Machine {
    fn new(exchanges: u32) -> Machine {
        let params = hot_policy::Params { exchanges, ..eager() };
        let spec = spec(&[8, 56], PlacementPolicy::hot(params));
        let mut placement = Placement::new(&spec, CPU_LINE).expect("can be built");
        placement.set_extent(62 * PAGE, 64 * PAGE).expect("there is room");
        let dram = read_spec::<DramSpec>(DRAM).expect("a memory");
        let table = DRAM.replace("[timing]", "[dram.timing]");
        let cache = read_spec::<DramCacheSpec>(&format!("{CACHE}[dram]\n{table}")).expect("a cache");
        Machine {
            queue: EventQueue::new(),
            placement,
            dram: Dram::new(&dram, CPU_LINE).expect("can be built"),
            cache: DramCache::new(&cache, CPU_LINE).expect("can be built"),
            from_placement: Vec::new(),
            from_dram: Vec::new(),
            from_cache: Vec::new(),
            done: Vec::new(),
            arrived: Vec::new(),
        }
    }

    /// Delivers all messages of this instant.
    fn settle(&mut self) {
        while !(self.from_placement.is_empty() && self.from_dram.is_empty() && self.from_cache.is_empty()) {
            for out in std::mem::take(&mut self.from_placement) {
                match out {
                    Out::Done(command) => self.done.push((self.queue.now(), command)),
                    Out::Target { target: 0, command } => tell!(self, dram, from_dram, command, command),
                    Out::Target { command, .. } => tell!(self, cache, from_cache, command, command),
                }
            }
            for dram::Out::Done(command) in std::mem::take(&mut self.from_dram) {
                tell!(self, placement, from_placement, answered, 0, command);
            }
            for out in std::mem::take(&mut self.from_cache) {
                match out {
                    dram_cache::Out::Done(command) => {
                        tell!(self, placement, from_placement, answered, 1, command)
                    }
                    dram_cache::Out::Arrived { page, .. } => {
                        let address = self.placement.address_of(1, page).expect("a page that was asked for");
                        self.arrived.push((self.queue.now(), address));
                    }
                    out => panic!("nothing is behind the cache: {out:?}"),
                }
            }
        }
    }

    fn step(&mut self) -> bool {
        match self.queue.pop() {
            None => return false,
            Some(Ev::Placement(event)) => tell!(self, placement, from_placement, handle, event),
            Some(Ev::Dram(event)) => tell!(self, dram, from_dram, handle, event),
            Some(Ev::Cache(event)) => tell!(self, cache, from_cache, handle, event),
        }
        self.settle();
        true
    }
}

/// While pages move between them: every command is answered; a requester answered without data is told when the page
/// has arrived, by the address that it knows; and the stages of all components sum to the waiting time.
#[test]
fn memories_behind_a_placement_answer_whoever_asks() {
    for exchanges in [1, 4] {
        let (mut machine, mut rng) = (Machine::new(exchanges), Rng::stream(exchanges.into(), "test"));
        let mut asked = Vec::new();
        for tag in 0..3_000 {
            let page = if rng.below(3) > 0 { 40 + rng.below(8) } else { rng.below(64) };
            let absent = if rng.below(2) == 0 { Absent::Wait } else { Absent::Signal };
            let (write, demand) = (rng.below(4) == 0, rng.below(4) > 0);
            let lines = 1 << rng.below(64);
            let since = machine.queue.now();
            let command = MemCommand { tag, pc: 9, lines, write, demand, absent, since, ..read(page) };
            asked.push(command);
            tell!(machine, placement, from_placement, command, command);
            machine.settle();
            while machine.placement.outstanding() > 12 {
                assert!(machine.step(), "deadlock");
            }
        }
        while machine.step() {}
        assert_eq!((machine.placement.outstanding(), machine.cache.outstanding()), (0, 0));
        assert!(
            machine.placement.accounts().iter().all(Account::holds),
            "{:?}",
            machine.placement.accounts()
        );
        machine.done.sort_by_key(|(_, command)| command.tag);
        assert_eq!(machine.done.len(), asked.len());
        let (mut signalled, mut life) = (0, 0);
        for ((at, answer), command) in machine.done.iter().zip(&asked) {
            assert_eq!(*answer, MemCommand { absent: answer.absent, since: *at, ..*command });
            life += u128::from((*at - command.since).ps()) * u128::from(command.demand);
            if answer.absent == Absent::Signalled {
                signalled += 1;
                let came = machine.arrived.iter().any(|(then, page)| then >= at && *page == command.page);
                assert!(came, "the arrival of {} after {at} is not reported", command.page);
            }
        }
        let tallies = [&machine.placement.tally, &machine.dram.tally, &machine.cache.tally];
        let tally: u128 = tallies.iter().flat_map(|tally| tally.reads().iter().chain(tally.writes())).sum();
        assert_eq!(tally, life);
        let stats = &machine.placement.stats;
        assert!(stats.promotions > 20 && stats.waits > 20 && signalled > 20, "{signalled} {stats:?}");
        // Bytes at the DRAM are those of commands and of moves.
        let [fast, _] = &stats.targets[..] else { panic!("two memories") };
        let bytes = |lines: u64, pages: u64| lines * CPU_LINE + pages * PAGE;
        let dram = &machine.dram.stats;
        assert_eq!(
            (dram.read_bytes, dram.written_bytes),
            (bytes(fast.lines_read, fast.pages_out), bytes(fast.lines_written, fast.pages_in))
        );
    }
}
