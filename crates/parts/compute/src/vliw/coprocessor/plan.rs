//! Plan of a program on a coprocessor, made before time: its steps, the memory contents for each, and the cores' work
//! in each.

use super::super::State;
use super::{Act, Coprocessor, Done, Event, Out, Places, bytes, needs_of};
use crate::vliw::memory::Sharing;
use crate::vliw::spec::CoprocessorSpec;
use crate::vliw::{
    GROUP,
    program::{Cost, Part, Program},
};
use config::SpecError;
use engine::{Cx, Known, Time};
use nest::executed::Area;
use nest::{Kernel, Section};
use proto::offload::{Action, Plan, PlannedArray};
use std::{collections::BTreeMap, sync::Arc};

/// Work of a core in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Time in which it issues.
    pub(super) issue: Time,
    /// Time in which it issues or waits for its caches.
    pub(super) alone: Time,
    /// Time as `alone`, beside the other cores of its step, with which it shares memory.
    pub(super) computes: Time,
    /// Bytes between its caches and memory meanwhile.
    pub(super) bytes: u64,
    /// Time to write its caches back.
    pub(super) write_back: Time,
}

/// Step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Cost of a parallel loop before any core computes; zero in a step of a serial microblock.
    pub(super) parallel: Time,
    /// Shares of the cores that have work.
    pub(super) shares: Vec<Share>,
    /// Bytes loaded since the previous step, and bytes stored; the last step also counts those stored afterwards.
    pub(super) loads: u64,
    pub(super) stores: u64,
}

/// Program with its plan.
#[derive(Clone)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) steps: Arc<[Step]>,
}

/// Plans of a study's programs.
static PLANS: Known<(Kernel, CoprocessorSpec), Planned> = Known::new(64);

/// Returns whether files have an array before a program starts, and when it has ended.
fn is_given(array: &Area) -> bool {
    matches!(array.section, Section::Input | Section::Inout)
}

fn is_kept(array: &Area) -> bool {
    matches!(array.section, Section::Output | Section::Inout)
}

impl Planned {
    /// Plan of a kernel as the program with this number.
    ///
    /// # Errors
    /// Errors of [`Planned::of`], and those of `program` where it is not known yet.
    pub(super) fn of_kernel(
        kernel: Kernel,
        number: u32,
        spec: &CoprocessorSpec,
        program: impl FnOnce(Kernel) -> Result<Program, SpecError>,
    ) -> Result<Planned, SpecError> {
        let work_out =
            |(kernel, spec): &(Kernel, CoprocessorSpec)| Planned::of(&program(kernel.clone())?, number, spec);
        let Planned { plan, steps } = PLANS.ask((kernel, spec.clone()), work_out)?;
        Ok(Planned { plan: Plan { program: number, ..plan }, steps })
    }

    /// Plan of the program with this number.
    ///
    /// # Errors
    /// A section that exceeds memory; more sections than a program may have.
    pub(super) fn of(program: &Program, number: u32, spec: &CoprocessorSpec) -> Result<Planned, SpecError> {
        let places = Places::of(&program.arrays);
        let mut kept = Kept::new(spec.frames() as usize, places.groups().map(is_given));
        let (mut actions, mut steps) = (Vec::new(), Vec::<Step>::new());
        let (mut needs, mut scratch) = (Vec::new(), Vec::new());
        for microblock in 0..program.microblocks() {
            for parts in deal(program, microblock, spec, &places)? {
                needs_of(program, &parts, &places, &mut needs);
                if needs.len() as u64 > spec.frames_of_a_step() {
                    return Err(program.too_large(needs.len(), spec.frames_of_a_step()));
                }
                let moves = kept.bring(&needs);
                let (stores, loads) = (places.stretches(&moves.stores), places.stretches(&moves.loads));
                let mut step = Step {
                    parallel: Time::ZERO,
                    shares: Vec::new(),
                    loads: bytes(&loads),
                    stores: bytes(&stores),
                };
                actions.extend(stores.into_iter().map(Action::Store));
                actions.extend(loads.into_iter().map(Action::Load));
                actions.push(Action::Work(steps.len() as u32));
                if program.is_split(microblock) {
                    step.parallel = spec.core.time(spec.parallel_cycles());
                }
                for part in parts {
                    needs_of(program, &[part], &places, &mut needs);
                    let Cost { issue, stall, bytes } = program.cost(&part, true, &spec.core, &mut scratch);
                    let alone = spec.core.time(issue + stall);
                    step.shares.push(Share {
                        issue: spec.core.time(issue),
                        alone,
                        computes: alone,
                        bytes,
                        write_back: spec.core.time(spec.core.cycles_to_write_back(needs.len() as u64)),
                    });
                }
                share(&mut step.shares, spec);
                steps.push(step);
            }
        }
        let is_left = |group: &u32| is_kept(&program.arrays[places.array_of(*group)]);
        let left = places.stretches(&kept.changed().filter(is_left).collect::<Vec<_>>());
        if let Some(last) = steps.last_mut() {
            last.stores += bytes(&left);
        }
        actions.extend(left.into_iter().map(Action::Store));
        let array = |array: &Area| PlannedArray {
            name: array.name.clone(),
            bytes: array.bytes,
            is_given: is_given(array),
            is_shared: array.section == Section::Input,
            is_kept: is_kept(array),
        };
        let arrays = program.arrays.iter().map(array).collect();
        let plan =
            Plan { name: program.name.clone(), program: number, arrays, ahead: spec.buffers > 1, actions };
        Ok(Planned { plan, steps: steps.into() })
    }
}

/// Divides memory among cores that begin together.
fn share(shares: &mut [Share], spec: &CoprocessorSpec) {
    let mut sharing = Sharing::new(spec.cores, spec.memory.bandwidth.bytes_per_s());
    for (core, share) in shares.iter().enumerate() {
        sharing.begin(Time::ZERO, core, share.alone, share.bytes);
    }
    loop {
        let next = sharing.ends_at().min_by_key(|(core, at)| (*at, *core));
        let Some((core, at)) = next else { return };
        if sharing.ends(at, core) {
            // A share that would take no time alone counts a picosecond.
            shares[core].computes = at.max(shares[core].alone);
        }
    }
}

// Division of a microblock into steps, and of a step among cores.
//
// A microblock is one step if memory has room for all data that it touches. Otherwise it is executed in sections, each
// as large as memory, which are steps. A step is dealt out as a static loop over its iterations of the split loop. If
// these are too few for equal shares, because one iteration goes through much of the memory's contents, cores have
// equal shares of the whole loop instead. Each share is in sections as large as the core's share of memory, and all
// cores go from section to section together: data that they read at the same time are loaded once. This is done where
// it is shorter and memory has room for it.

/// Allowed ratio of the longest cores' issue time, summed over all steps, to that of the longest core if the whole loop
/// was dealt out at once.
const LONGER: (u64, u64) = (21, 20);

/// Part of its share of memory that a core uses, in eighths: arrays begin anywhere in page groups, so cores with the
/// whole share may get sections of different lengths, and wait for each other.
const EIGHTHS: [u64; 3] = [8, 7, 6];

/// Steps of a microblock, in order: the part of each core that has one.
///
/// # Errors
/// More sections than a program may have.
pub(super) fn deal(
    program: &Program,
    microblock: usize,
    spec: &CoprocessorSpec,
    places: &Places<'_>,
) -> Result<Vec<Vec<Part>>, SpecError> {
    let cores = u64::from(spec.cores);
    let (mut needs, mut sections, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    for whole in program.screens(microblock, 1) {
        needs_of(program, &[whole], places, &mut needs);
        if !needs.is_empty() && needs.len() as u64 <= spec.frames_of_a_step() {
            sections.push(whole);
        } else {
            program.sections(whole, spec.frames_of_a_step() * GROUP, &mut sections)?;
        }
    }
    let steps: Vec<Vec<Part>> = sections.iter().map(|section| program.dealt(section, cores)).collect();
    let screens = program.screens(microblock, cores);
    let mut cycles = |steps: &[Vec<Part>]| -> u64 {
        let mut of = |part: &Part| program.cost(part, false, &spec.core, &mut scratch).issue;
        steps.iter().map(|parts| parts.iter().map(&mut of).max().unwrap_or(0)).sum()
    };
    let in_sections = cycles(&steps);
    if in_sections * LONGER.1 <= cycles(std::slice::from_ref(&screens)) * LONGER.0 {
        return Ok(steps);
    }
    let mut best = (in_sections, steps);
    for eighths in EIGHTHS {
        // Too many sections for a program: this way is not available.
        let budget = spec.frames_of_a_step() * eighths / (8 * cores) * GROUP;
        let Ok(together) = together(program, &screens, budget) else { continue };
        let fits = |parts: &Vec<Part>| {
            needs_of(program, parts, places, &mut needs);
            needs.len() as u64 <= spec.frames_of_a_step()
        };
        let cycles = cycles(&together);
        if cycles < best.0 && together.iter().all(fits) {
            best = (cycles, together);
        }
    }
    Ok(best.1)
}

/// Screens in sections of at most `budget` bytes: the first of all at once, then the second of all, and so on.
fn together(program: &Program, screens: &[Part], budget: u64) -> Result<Vec<Vec<Part>>, SpecError> {
    let sections = |screen: &Part| {
        let mut sections = Vec::new();
        program.sections(*screen, budget, &mut sections).map(|()| sections)
    };
    let each = screens.iter().map(sections).collect::<Result<Vec<_>, _>>()?;
    let count = each.iter().map(Vec::len).max().unwrap_or(0);
    let at = |step| each.iter().filter_map(|sections| sections.get(step).copied()).collect();
    Ok((0..count).map(at).collect())
}

// Memory contents of a coprocessor between the steps of a program: page groups, least recently used evicted first.

/// Page group that a step needs, by its number among those of all arrays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Need {
    pub(super) group: u32,
    /// True if the step changes it.
    pub(super) writes: bool,
}

/// State of a group.
#[derive(Clone, Copy, Default, Debug)]
struct Group {
    /// Last use, if it is in memory.
    used: Option<u64>,
    /// True if changed since it last equalled the file.
    dirty: bool,
    /// True if a file has any of its data.
    filed: bool,
}

/// Contents of memory.
pub(super) struct Kept {
    groups: Vec<Group>,
    /// Groups in memory, by last use.
    order: BTreeMap<u64, u32>,
    frames: usize,
    uses: u64,
}

/// Transfers before a step: groups that leave first, then groups that come.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Moves {
    pub(super) stores: Vec<u32>,
    pub(super) loads: Vec<u32>,
}

impl Kept {
    /// Creates an empty memory with room for `frames` groups; `filed` tells for each group whether a file has it.
    pub(super) fn new(frames: usize, filed: impl Iterator<Item = bool>) -> Kept {
        let group = |filed| Group { filed, ..Group::default() };
        Kept { groups: filed.map(group).collect(), order: BTreeMap::new(), frames, uses: 0 }
    }

    /// Brings the groups of a step into memory, each once and no more than fit.
    pub(super) fn bring(&mut self, needs: &[Need]) -> Moves {
        debug_assert!(needs.len() <= self.frames);
        let mut moves = Moves::default();
        // Groups in memory are used before any is evicted.
        let (here, absent): (Vec<&Need>, Vec<&Need>) =
            needs.iter().partition(|need| self.groups[need.group as usize].used.is_some());
        here.into_iter().for_each(|need| self.touch(need));
        for need in absent {
            if self.order.len() == self.frames
                && let Some((_, oldest)) = self.order.pop_first()
            {
                let gone = &mut self.groups[oldest as usize];
                if gone.dirty {
                    moves.stores.push(oldest);
                }
                *gone = Group { used: None, dirty: false, filed: gone.filed || gone.dirty };
            }
            if self.groups[need.group as usize].filed {
                moves.loads.push(need.group);
            }
            self.touch(need);
        }
        moves.stores.sort_unstable();
        moves
    }

    fn touch(&mut self, need: &Need) {
        let of = &mut self.groups[need.group as usize];
        if let Some(before) = of.used.replace(self.uses) {
            self.order.remove(&before);
        }
        of.dirty |= need.writes;
        self.order.insert(self.uses, need.group);
        self.uses += 1;
    }

    /// Groups changed since they were last equal to their files, in the order of their numbers.
    pub(super) fn changed(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().zip(0..).filter(|(of, _)| of.dirty).map(|(_, group)| group)
    }
}

// Execution of a step, from its launch until the last core is through.

/// Order to execute a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered {
    pub(super) tag: u32,
    pub(super) at: Time,
    pub(super) program: usize,
    pub(super) step: usize,
}

/// Step being executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    order: Ordered,
    /// Times at which its first core could begin, and at which all had their shares.
    launched: Time,
    dealt: Time,
    /// Number of cores that are not through.
    left: usize,
}

impl Coprocessor {
    fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("a step is under way")
    }

    fn step(&self, of: Ordered) -> &Step {
        &self.programs[of.program].steps[of.step]
    }

    /// Launches the next step if none is under way.
    pub(super) fn launch(&mut self, cx: &mut impl Cx<Event, Out>) {
        if self.running.is_some() {
            return;
        }
        let Some(order) = self.waiting.pop_front() else { return };
        self.running = Some(Running { order, launched: Time::ZERO, dealt: Time::ZERO, left: 0 });
        cx.after(self.spec.launch.time(), Event::Launched(order.tag));
    }

    /// Puts all cores into a step, also those without a share.
    pub(super) fn launched(&mut self, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let running = self.running();
        running.launched = now;
        let order = running.order;
        self.turn(now, self.spec.cores.into(), State::Idle, State::Waits);
        cx.after(self.step(order).parallel, Event::Dealt(order.tag));
    }

    /// Starts the cores' shares.
    pub(super) fn dealt(&mut self, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let order = self.running().order;
        let step = &self.programs[order.program].steps[order.step];
        let count = step.shares.len();
        for (core, share) in step.shares.iter().enumerate() {
            self.since[core] = now;
            cx.after(share.computes, Event::Computed(core as u16));
        }
        self.turn(now, count, State::Waits, State::Computes);
        let running = self.running();
        (running.dealt, running.left) = (now, count);
    }

    /// Ends a core's share: its caches are written back.
    pub(super) fn computed(&mut self, core: u16, cx: &mut impl Cx<Event, Out>) {
        let (now, at) = (cx.now(), usize::from(core));
        let order = self.running().order;
        let Share { issue, computes, bytes, write_back, .. } = self.step(order).shares[at];
        self.stats.busy[at] += computes;
        self.stats.stalled[at] += computes - issue;
        self.stats.computed[at] += now - self.since[at];
        self.carry(self.since[at], now, bytes);
        let program = &self.programs[order.program].plan.name;
        if let Some(observer) = &mut self.observer {
            let act = Act::Share { core, program, stalled: computes - issue };
            observer.done(&Done { act, from: self.since[at], to: now });
        }
        self.turn(now, 1, State::Computes, State::Waits);
        cx.after(write_back, Event::Clean(core));
    }

    /// Ends a core's part in the step: with the last core, the step is over.
    pub(super) fn clean(&mut self, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let running = self.running();
        running.left -= 1;
        if running.left > 0 {
            return;
        }
        let Running { order, launched, dealt, .. } = *running;
        self.running = None;
        self.turn(now, self.spec.cores.into(), State::Waits, State::Idle);
        let took = now - dealt;
        let all = self.step(order).shares.iter().map(|share| share.alone);
        let work = all.clone().fold(Time::ZERO, |sum, one| sum + one);
        let is_short = Some(took) < all.max() || took.times(self.spec.cores.into()) < work;
        self.stats.short += u64::from(is_short);
        self.stats.executing += now - launched;
        let program = &self.programs[order.program].plan.name;
        if let Some(observer) = &mut self.observer {
            let act = Act::Step { program, step: order.step as u32 };
            observer.done(&Done { act, from: launched, to: now });
        }
        let latency = self.spec.link.latency.time();
        self.stats.worked.add(0, now + latency - order.at);
        cx.after(latency, Event::Done(order.tag));
        self.launch(cx);
    }
}
