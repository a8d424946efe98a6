//! Kernels on an accelerator whose flash answers after fixed times.

mod shown;

use super::*;
use crate::vliw::issue::ByUnit;
use crate::vliw::program::Table;
use crate::vliw::sched::AcceleratorScheduling;
use crate::vliw::spec::{AcceleratorSpec, AcceleratorSums, AcceleratorWork, FirmwareSpec};
use crate::vliw::testing::{columns, core, memory, shipped, whole};
use config::units::{Bandwidth, Duration};
use engine::EventQueue;
use proto::groups::{Groups, Work};
use std::collections::{BTreeMap, BTreeSet};

const READ: Time = Time::from_us(100);
const WRITE: Time = Time::from_ms(2);

fn spec(workers: u16, scheduler: AcceleratorScheduling) -> AcceleratorSpec {
    AcceleratorSpec {
        workers,
        core: core(),
        memory: memory(),
        work: AcceleratorWork::nest,
        sums: AcceleratorSums::memory,
        scheduler,
        ahead: 1,
        costs: FirmwareSpec {
            message: 100,
            schedule: 200,
            entry: 10,
            boot: Duration::new(Time::from_us(10)),
        },
        sample: 1 << 14,
        energy: None,
    }
}

engine::events! {
    enum World {
        /// Event of the accelerator.
        Part(Event),
        /// Flash answers.
        Tells(u32),
    }
}

/// Time, and flash: locks as they come, reads and writes after fixed times.
#[derive(Default)]
struct Outside {
    queue: EventQueue<World>,
    answers: Vec<(Tell, Option<u32>)>,
    /// Locks that are held, by tag.
    held: BTreeMap<u32, (Groups, bool)>,
    reads: u64,
    writes: u64,
    /// Groups whose program is under way, and those that were programmed.
    under_way: BTreeSet<u32>,
    written: BTreeSet<u32>,
    /// When each program was asked for.
    asked_at: Vec<Time>,
    over: Vec<(u32, Time)>,
}

impl Outside {
    fn take(&mut self, out: Out) {
        let now = self.queue.now();
        let ask = match out {
            Out::Over(kernel) => return self.over.push((kernel, now)),
            Out::Ask(ask) => ask,
        };
        let programs = match ask {
            Ask::Write { groups, .. } => Some(groups.first),
            _ => None,
        };
        let (delay, tell) = match ask {
            Ask::Lock { tag, groups, write } => {
                let meets = |other: &Groups| other.first <= groups.last && groups.first <= other.last;
                let conflict = self.held.values().any(|(other, writes)| meets(other) && (write || *writes));
                assert!(!conflict, "instances have arrays of their own");
                self.held.insert(tag, (groups, write));
                (Time::ZERO, Tell::Locked { tag })
            }
            Ask::Unlock { tag } => {
                self.held.remove(&tag).expect("a lock that is held");
                return;
            }
            Ask::Read { tag, groups } => {
                self.reads += u64::from(groups.count());
                for group in groups.first..=groups.last {
                    assert!(!self.under_way.contains(&group), "a group is read while it is programmed");
                }
                (READ, Tell::Done { tag, failed: 0 })
            }
            Ask::Write { tag, groups } => {
                self.writes += u64::from(groups.count());
                assert!(self.under_way.insert(groups.first), "a group is programmed twice at once");
                self.written.insert(groups.first);
                self.asked_at.push(now);
                (WRITE, Tell::Done { tag, failed: 0 })
            }
            Ask::Worked { .. } => return,
        };
        self.answers.push((tell, programs));
        self.queue.after(delay, World::Tells(self.answers.len() as u32 - 1));
    }
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| World::Part(event),
    out: |at, out| at.take(out),
}

/// Runs instances of programs, each of an application of its own number; when each was over.
fn run(
    spec: &AcceleratorSpec,
    kernels: &[(&str, i64)],
    instances: &[(usize, u16)],
) -> (Accelerator, Outside) {
    run_kernels(spec, kernels.iter().map(|(name, side)| shipped(name, *side)), instances)
}

/// Run with kernels that are not shipped.
fn run_kernels(
    spec: &AcceleratorSpec,
    kernels: impl Iterator<Item = Kernel>,
    instances: &[(usize, u16)],
) -> (Accelerator, Outside) {
    let mut part = Accelerator::new(spec, 4_096).expect("an accelerator");
    for kernel in kernels {
        part.add(kernel).expect("input that fits");
    }
    let outside = run_part(&mut part, instances);
    (part, outside)
}

/// Runs instances of programs that an accelerator has.
fn run_part(part: &mut Accelerator, instances: &[(usize, u16)]) -> Outside {
    let mut outside = Outside::default();
    let numbers =
        instances.iter().map(|(kernel, app)| part.instance(*kernel, *app).expect("output that fits"));
    for number in numbers.collect::<Vec<_>>() {
        part.offload(number, Time::ZERO, &mut outside);
    }
    while let Some(event) = outside.queue.pop() {
        match event {
            World::Part(event) => part.handle(event, &mut outside),
            World::Tells(at) => {
                let (tell, programmed) = outside.answers[at as usize];
                if let Some(group) = programmed {
                    outside.under_way.remove(&group);
                }
                part.told(tell, &mut outside);
            }
        }
    }
    assert!(part.is_idle(), "kernels are left");
    assert!(outside.held.is_empty() && part.asked.is_empty() && part.messages.is_empty());
    outside
}

/// Every policy ends all kernels, no sooner than its work allows; what they leave is on flash once.
#[test]
fn kernels_end_under_every_policy() {
    for scheduler in AcceleratorScheduling::all_defaults() {
        let name = scheduler.name();
        let (part, outside) = run(
            &spec(3, scheduler),
            &[("atax", 512), ("gemm", 128)],
            &[(0, 0), (0, 1), (1, 2), (1, 3), (0, 4)],
        );
        let stats = &part.stats;
        assert_eq!(outside.over.len(), 5, "{name}");
        let end = outside.over.iter().map(|(_, time)| *time).max().expect("kernels");
        let busy: Time = stats.busy.iter().fold(Time::ZERO, |sum, busy| sum + *busy);
        assert!(end.times(3) >= busy, "{name}: {end} for {busy}");
        for at in 0..3 {
            assert_eq!(stats.busy[at], stats.held[at] - stats.waited[at], "{name}: two counts");
            assert!(stats.held[at] <= end, "{name}");
        }
        assert!(stats.work >= busy && end.times(3) >= stats.work, "{name}");
        assert_eq!(stats.fetched, outside.reads, "{name}");
        assert_eq!(stats.written, outside.writes, "{name}");
        for times in &stats.kernels {
            assert!(
                times.offloaded <= times.begun && times.begun < times.computed && times.computed < times.over,
                "{name}"
            );
        }
        // Outputs of ATAX are one group each (512 x 4 B), those of GEMM one (128 x 128 x 4 B); memory holds everything, so that each goes once.
        assert_eq!(outside.writes, 5, "{name}: {:?}", outside.written);
        // The matrices of both (16 groups, and two of one) and ATAX's vector come once, GEMM's C with each of its instances.
        assert_eq!(outside.reads, 16 + 1 + 2 + 2, "{name}");
    }
}

/// One worker, one kernel of two sections, nothing in memory: message, map, read, message, compute, compute, caches, message, program. The second section is there by
/// the time that the first is computed.
#[test]
fn one_section_takes_what_its_steps_take() {
    let spec = spec(1, AcceleratorScheduling::intra_in_order);
    let (mut part, outside) = run(&spec, &[("mvt", 128)], &[(0, 0)]);
    let [times] = part.stats.kernels[..] else { panic!("one kernel") };
    // Offload: 100 cycles of Flashvisor; its decision 300, the worker's message 100, the boot.
    assert_eq!(times.begun - times.offloaded, Time::from_ns(500) + Time::from_us(10));
    let program = &part.programs[0];
    let piece = program.program.screens(0, 1)[0];
    let cost = program.program.cost(&piece, true, &part.spec.core, &mut part.scratch);
    // A matrix and two vectors, a group each: 100 + 3 x 10 cycles, then flash, then 100 cycles of the worker.
    let there = Time::from_ns(130) + READ + Time::from_ns(100);
    let computes = Time::from_ns(cost.issue + cost.stall);
    // Three groups of each section have 3,072 lines of 128 B together.
    let ends = Time::from_ns(3_072 * 65 + 100) + Time::from_ns(100);
    assert_eq!(times.computed - times.begun, there + computes + ends);
    assert_eq!(times.over - times.computed, WRITE);
    // Both vectors that change go to flash.
    assert_eq!((outside.reads, outside.writes), (5, 2));
}

/// Matrices that memory does not hold: sections wait for frames, changed groups make room and come back, and all kernels end.
#[test]
fn more_than_memory_holds_goes_through_it() {
    for scheduler in AcceleratorScheduling::all_defaults() {
        let name = scheduler.name();
        let (part, outside) =
            run(&spec(3, scheduler), &[("2dcon", 1_400), ("gesum", 900)], &[(0, 0), (1, 1), (0, 2)]);
        // 1,400 x 1,400 x 4 B are 120 groups, and each instance's output as many.
        assert!(outside.reads >= 120 + 2 * 50, "{name}: {}", outside.reads);
        assert!(outside.writes >= 2 * 119, "{name}: {}", outside.writes);
        assert!(part.stats.hungry > 0, "{name}");
    }
}

/// Memory has 128 frames. The first microblock changes 120 groups; the second needs 16 others, 8 of which the empty frames serve. For the other 8, eight groups are programmed at once: it
/// waits for one program, not for eight, and none is programmed beside them before the kernel ends.
#[test]
fn as_many_groups_are_programmed_at_once_as_frames_are_lacking() {
    let text = r#"
name = "room"
[sizes]
n = 1966080 # 120 groups of 64 KiB
m = 131072 # 8 groups
[arrays.x]
shape = ["m"]
element = "f32"
section = "input"
[arrays.y]
shape = ["n"]
element = "f32"
section = "output"
[arrays.z]
shape = ["m"]
element = "f32"
section = "output"
[[microblocks]]
code = "for i in 0..n { y[i] = 1; }"
[[microblocks]]
code = "for i in 0..m { z[i] = x[i]; }"
"#;
    let spec = spec(1, AcceleratorScheduling::inter_dynamic);
    let kernel = Kernel::read(text, "room.toml", &[]).expect("a kernel");
    let (part, outside) = run_kernels(&spec, [kernel].into_iter(), &[(0, 0)]);
    let [times] = part.stats.kernels[..] else { panic!("one kernel") };
    let program = &part.programs[0];
    let costs = |microblock: usize, begins| {
        let screen = &program.program.screens(microblock, 1)[0];
        let cost = program.program.cost(screen, begins, &spec.core, &mut Vec::new());
        Time::from_ns(cost.issue + cost.stall)
    };
    // A message, 16 entries, one program, the worker's message; then it computes and writes its caches back: 16 groups have 8,192 lines, of which the second level holds 4,096.
    let ends = Time::from_ns(4_096 * 65 + 100) + Time::from_ns(100);
    let second = Time::from_ns(100 + 16 * 10) + WRITE + Time::from_ns(100) + costs(1, true) + ends;
    // Two sections of the first, 64 and 56 groups: the second's are mapped while the first is computed.
    let first = Time::from_ns(100 + 64 * 10) + Time::from_ns(100) + costs(0, true) + ends;
    assert_eq!(times.computed - times.begun, first + second);
    let early: Vec<Time> = outside.asked_at.iter().copied().filter(|at| *at < times.computed).collect();
    assert_eq!(early.len(), 8);
    assert!(early.iter().all(|at| *at == early[0]), "{early:?}");
    assert_eq!((outside.reads, outside.writes), (8, 128));
    assert_eq!(part.stats.hungry, 1);
}

/// A convolution of two by two has no element inside its frame: its kernel ends, and flash is asked nothing.
#[test]
fn a_microblock_without_iterations_is_over_at_once() {
    for scheduler in AcceleratorScheduling::all_defaults() {
        let (part, outside) = run(&spec(3, scheduler), &[("2dcon", 2)], &[(0, 0), (0, 1)]);
        assert_eq!((outside.over.len(), outside.reads, outside.writes, part.stats.sections), (2, 0, 0, 0));
    }
}

/// Requests of flash to Storengine's core are executed one after another.
#[test]
fn work_for_flash_takes_time_of_its_core() {
    let mut part = Accelerator::new(&spec(1, AcceleratorScheduling::default()), 64).expect("an accelerator");
    let mut outside = Outside::default();
    let work = Work { entries: 20, operations: 3 };
    part.told(Tell::Work { tag: 7, work }, &mut outside);
    part.told(Tell::Work { tag: 8, work }, &mut outside);
    let mut times = Vec::new();
    while let Some(event) = outside.queue.pop() {
        let World::Part(event) = event else { panic!("flash was asked nothing") };
        part.handle(event, &mut outside);
        times.push(outside.queue.now());
    }
    // 20 entries of 10 cycles and 3 messages of 100: 500 ns each.
    assert_eq!(times, [Time::from_ns(500), Time::from_us(1)]);
}

/// Instructions of a program by Table 2, by unit, with at most `most` screens per microblock.
fn by_table(kernel: &Kernel, most: u64) -> ByUnit {
    let table = Table::of(kernel).expect("a row of Table 2");
    let mut all = ByUnit::default();
    for microblock in 0..kernel.microblocks().len() {
        for screen in kernel.screens(microblock, most) {
            let ByUnit { memory, multiply, general } = table.by_unit(&kernel.counts(&screen), &core());
            all.memory += memory;
            all.multiply += multiply;
            all.general += general;
        }
    }
    all
}

/// Table 2 as it is printed: input in MB, and the share of loads and stores and input bytes of a thousand instructions. 640 MB / 68.86 B are 9.29 thousand million instructions.
#[test]
fn all_programs_have_the_instructions_of_table2() {
    let rows = [
        ("atax", 640.0, 45.61, 68.86),
        ("bicg", 640.0, 46.0, 72.3),
        ("2dcon", 640.0, 23.96, 35.59),
        ("mvt", 640.0, 45.1, 72.05),
        ("adi", 1920.0, 23.96, 35.59),
        ("fdtd", 1920.0, 27.27, 38.52),
        ("gesum", 640.0, 48.08, 72.13),
        ("syrk", 1280.0, 28.21, 5.29),
        ("3mm", 2560.0, 33.68, 2.48),
        ("covar", 640.0, 34.33, 2.86),
        ("gemm", 192.0, 30.77, 5.29),
        ("2mm", 2560.0, 33.33, 3.76),
        ("syr2k", 1280.0, 30.19, 1.85),
        ("corr", 640.0, 33.04, 2.79),
    ];
    for (name, input, ldst, bki) in rows {
        let kernel = whole(name);
        // A whole is rounded once a microblock. Each screen has the loops around the split one for itself, which are a millionth.
        for (most, apart) in [(1, 5.0), (6, input * 1e3 / bki)] {
            let all = by_table(&kernel, most);
            let instructions = (all.memory + all.multiply + all.general) as f64;
            assert!((instructions - input * 1e9 / bki).abs() <= apart, "{name}: {instructions}");
            assert!((all.memory as f64 - instructions * ldst / 100.0).abs() <= apart, "{name}");
        }
    }
}

/// `y[i] += A[i][j] * x[j]` over ten by ten: 10 operations an inner iteration (4 of memory, a multiplication, an addition, an address, 3 of the loop) and 3 an outer one, 1,030. Two rows are 206 of them: of
/// 100,000 instructions, 20,000, of which 40 % are loads and stores. Of the other 12,000, 20 of the nest's 126 are multiplications.
#[test]
fn a_screen_has_its_share_of_the_work() {
    let text = r#"
name = "share"
[sizes]
n = 10
[arrays.A]
shape = ["n", "n"]
element = "f32"
section = "input"
[arrays.x]
shape = ["n"]
element = "f32"
section = "input"
[arrays.y]
shape = ["n"]
element = "f32"
section = "inout"
[[microblocks]]
split = "i"
code = "for i in 0..n { for j in 0..n { y[i] += A[i][j] * x[j]; } }"
[paper]
ldst = 40
bki = 10
input = 0.001
microblocks = 1
serial = 0
"#;
    let mut spec = spec(5, AcceleratorScheduling::default());
    spec.work = AcceleratorWork::table;
    let mut part = Accelerator::new(&spec, 64).expect("an accelerator");
    part.add(Kernel::read(text, "share.toml", &[]).expect("a kernel")).expect("a program");
    let screen = part.programs[0].program.screens(0, 5)[3];
    let kernel = Kernel::read(text, "share.toml", &[]).expect("a kernel");
    let piece = kernel.screens(0, 5).nth(3).expect("a screen");
    let found = Table::of(&kernel).expect("a table").by_unit(&kernel.counts(&piece), &core());
    assert_eq!(found, ByUnit { memory: 8_000, multiply: 1_905, general: 10_095 });
    // Two units for memory: 4,000 cycles. As written, units need 2 cycles an inner iteration and 1 an outer one, 42; the sum in memory makes it 9, after the last of a row another 4: 190.
    let cost = part.programs[0].program.cost(&screen, true, &spec.core, &mut Vec::new());
    assert_eq!(cost.issue, (4_000.0_f64 * 190.0 / 42.0).round() as u64);
    // Misses an access are the nest's: 8,000 accesses for its 80.
    let (core, work, sums) = (&spec.core, AcceleratorWork::nest, AcceleratorSums::memory);
    let by = Costing { core, work, sums, sample: spec.sample };
    let nest = Program::new(kernel, &by, 5).expect("a program");
    let own = nest.cost(&screen, true, &spec.core, &mut Vec::new());
    assert!(own.stall > 0 && own.bytes > 0);
    assert_eq!((own.issue, 100 * own.stall, 100 * own.bytes), (190, cost.stall, cost.bytes));
    // So an instruction takes as long, however many there are.
    for times in [10_u32, 1_000] {
        let text = text.replace("input = 0.001", &format!("input = {}", 0.001 * f64::from(times)));
        let kernel = Kernel::read(&text, "share.toml", &[]).expect("a kernel");
        let by = Costing { work: AcceleratorWork::table, ..by };
        let more = Program::new(kernel, &by, 5).expect("a program");
        let more = more.cost(&screen, true, &spec.core, &mut Vec::new());
        let times = u64::from(times);
        assert_eq!((more.stall, more.bytes), (times * cost.stall, times * cost.bytes));
        assert!(more.issue.abs_diff(times * cost.issue) <= times);
    }
    let without = text.split("[paper]").next().expect("the rest");
    let fault = part.add(Kernel::read(without, "share.toml", &[]).expect("a kernel")).expect_err("no table");
    assert!(format!("{fault:?}").contains("has no table `paper`"), "{fault:?}");
}

/// A search over 100,000 nodes beside a nest, under every policy: all of it ends, its levels (7 groups of 64 KiB) go to flash, and input comes from there once.
#[test]
fn a_program_that_is_executed_on_its_data_runs_as_a_nest_does() {
    let nodes = 100_000_u32;
    let offsets: Vec<u32> = (0..=nodes).map(|node| 2 * node).collect();
    let edges = (0..2 * nodes).map(|edge| (edge.wrapping_mul(2_654_435_761) >> 8) % nodes).collect();
    let search: Arc<dyn Executed> = Arc::new(nest::executed::Bfs::new(offsets, edges, 0));
    for scheduler in AcceleratorScheduling::all_defaults() {
        let name = scheduler.name();
        let spec = spec(3, scheduler);
        let mut part = Accelerator::new(&spec, 4_096).expect("an accelerator");
        let program = part.add_executed(&search).expect("input that fits");
        let outside = run_part(&mut part, &[(program, 0), (program, 1)]);
        assert_eq!(outside.over.len(), 2, "{name}");
        // 800 kB of nodes and 800 kB of edges: 13 groups each.
        assert_eq!((outside.reads, outside.writes), (26, 2 * 7), "{name}");
    }
    // What a piece finds lies anywhere: two groups of each of two marks, seven of levels. With what it reads, more than a section's ten.
    let mut spec = spec(6, AcceleratorScheduling::default());
    let fault = |spec: &AcceleratorSpec| {
        let mut part = Accelerator::new(spec, 4_096).expect("an accelerator");
        format!("{:?}", part.add_executed(&search).expect_err("it cannot run"))
    };
    assert!(fault(&spec).contains("but a section has room for 10"));
    spec.work = AcceleratorWork::table;
    assert!(fault(&spec).contains("no table gives the work of `bfs`"));
}

/// 8 MiB for 12 sections are 10 page groups each. An element of a product needs a column of 64 groups: it alone is seven sections and more, and the product has 2^20 of them.
#[test]
fn a_nest_that_falls_to_pieces_is_refused() {
    let mut part =
        Accelerator::new(&spec(6, AcceleratorScheduling::default()), 4_096).expect("an accelerator");
    let fault = format!("{:?}", part.add(columns()).expect_err("too many sections"));
    assert!(fault.contains("`columns` needs more than 262144 sections"), "{fault}");
    assert!(fault.contains("room for 10 page groups of 64 KiB"), "{fault}");
}
