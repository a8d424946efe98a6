//! Buffer eviction by a policy that decides when data leaves and how urgently: the flush begun next, and the idle die
//! that takes a set of pages in the background.
//!
//! A set is one page for each plane of a die, so that the die programs them together. It is begun as a whole when some
//! die may take it, and placed when all of its units are ready. If no die is idle by then, it waits for one.

use super::buffered::Buffered;
use super::{Device, Event, Out};
use engine::{Cx, Snapshot, Time};
use ftl::buffer::Flush;
use ftl::buffer::destage::{Background, Destage, Fill, Pace};
use ftl::page_map::space::Stream;
use ftl::purpose::Purpose;
use nand::dies::Backend;
use nand::dies::op::Op;
use nand::geometry::Geometry;
use proto::{BufferState, Command};

/// Eviction policy, and its work under way.
pub(super) struct Evictions {
    policy: Box<dyn Destage>,
    background: Option<Background>,
    /// Map units per set.
    set: u32,
    /// Units of the current set that have not begun yet.
    rest: u32,
    /// Background units that have begun and are not on flash.
    under_way: u32,
    /// Units among these without a die yet.
    unplaced: u32,
    /// Round-robin position in the stripe order.
    turn: u64,
    loads: Option<Loads>,
    /// True if a set could not begin because no die was idle on average.
    wants_sample: bool,
    /// True if a sampling event is scheduled.
    samples: bool,
}

/// Load of the dies in the last window.
struct Loads {
    since: Time,
    busy: Vec<Time>,
    is_idle: Vec<bool>,
}
engine::snapshot!(Loads { since, busy, is_idle });

impl Loads {
    /// Samples the loads again once the window is over.
    fn sample(&mut self, rule: &Background, backend: &Backend, now: Time) {
        let passed = now - self.since;
        if passed < rule.window {
            return;
        }
        let busy = backend.die_busy(now);
        for ((idle, busy), before) in self.is_idle.iter_mut().zip(&busy).zip(&self.busy) {
            let worked = u128::from((*busy - *before).ps()) * 1_000_000;
            *idle = worked <= u128::from(rule.busy_ppm) * u128::from(passed.ps());
        }
        (self.since, self.busy) = (now, busy);
    }
}

impl Evictions {
    /// Creates the state of a policy; `None` if the buffer's own rule decides.
    pub(super) fn new(policy: Box<dyn Destage>, geo: &Geometry) -> Option<Box<Evictions>> {
        let background = policy.background();
        let dies = geo.die_count as usize;
        let loads = background.filter(|rule| rule.window > Time::ZERO).map(|_| Loads {
            since: Time::ZERO,
            busy: vec![Time::ZERO; dies],
            is_idle: vec![true; dies],
        });
        let evictions = Evictions {
            background,
            set: Evictions::set(geo),
            rest: 0,
            under_way: 0,
            unplaced: 0,
            turn: 0,
            loads,
            wants_sample: false,
            samples: false,
            policy,
        };
        (!evictions.policy.is_off()).then(|| Box::new(evictions))
    }

    /// Map units per set.
    pub(crate) fn set(geo: &Geometry) -> u32 {
        geo.shape.planes * geo.units_per_program
    }

    /// Counts sectors of the host taken by the buffer.
    pub(super) fn came(&mut self, sectors: u32) {
        self.policy.came(sectors);
    }

    /// Counts a queued program.
    pub(super) fn placed(&mut self, pace: Pace, units: u32) {
        self.unplaced -= if pace == Pace::Background { units } else { 0 };
    }

    /// Counts a completed program.
    pub(super) fn done(&mut self, pace: Pace, units: u32) {
        self.under_way -= if pace == Pace::Background { units } else { 0 };
    }

    /// Returns true if the policy may be waiting for an idle die.
    pub(super) fn seeks_idle_dies(&self) -> bool {
        self.background.is_some()
    }

    /// Returns true if no event of the policy is scheduled.
    pub(super) fn is_idle(&self) -> bool {
        !self.samples
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Evictions {
            policy,
            background: _,
            set: _,
            rest: _,
            under_way,
            unplaced,
            turn,
            loads,
            wants_sample: _,
            samples: _,
        } = self;
        policy.save(out);
        (*under_way, *unplaced).save(out);
        turn.save(out);
        loads.iter().for_each(|loads| loads.save(out));
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.policy.load(input)?;
        (self.under_way, self.unplaced) = Snapshot::load(input)?;
        self.turn = u64::load(input)?;
        if let Some(loads) = &mut self.loads {
            let dies = loads.busy.len();
            *loads = Loads::load(input).filter(|l| l.busy.len() == dies && l.is_idle.len() == dies)?;
        }
        Some(())
    }
}

/// Purpose of the programs by which units leave the buffer.
pub(super) fn purpose_of(pace: Pace) -> Purpose {
    match pace {
        Pace::Even => Purpose::Flush,
        Pace::Foreground => Purpose::Foreground,
        Pace::Background => Purpose::Background,
    }
}

/// Pace at which the units of a program left the buffer.
pub(super) fn pace_of(op: &Op) -> Pace {
    match Purpose::of(op) {
        Purpose::Foreground => Pace::Foreground,
        Purpose::Background => Pace::Background,
        _ => Pace::Even,
    }
}

fn fill(buffered: &Buffered) -> Fill {
    let buffer = &buffered.buffer;
    Fill {
        dirty: buffer.dirty(),
        flushing: buffer.flushing(),
        pressed: buffer.is_starving() || (buffered.waiters > 0 && buffered.is_throttled()),
    }
}

impl Device {
    /// Handles a page victimization announced by the host.
    #[cold]
    pub(super) fn announced(&mut self, command: &Command, cx: &mut impl Cx<Event, Out>) {
        let Some(mut buffered) = self.buffered.take() else { return };
        if let Some(evictions) = &mut buffered.evictions {
            let sectors = u64::from(command.announced) * (proto::ANNOUNCED_PAGE / 512);
            evictions.policy.announced(cx.now(), sectors);
            self.stats.evictions.announcements += 1;
            self.stats.evictions.announced_pages += u64::from(command.announced);
            self.flush(&mut buffered, cx);
        }
        self.buffered = Some(buffered);
    }

    /// Buffer state as reported by the drive.
    pub(super) fn buffer_state(&self) -> BufferState {
        let evictions = self.buffered.as_ref().and_then(|b| b.evictions.as_ref());
        evictions.map_or(BufferState::Unknown, |e| e.policy.state())
    }

    /// Starts background write-back: a die has become idle, or has been sampled long enough.
    pub(super) fn evict_to_idle(&mut self, cx: &mut impl Cx<Event, Out>) {
        let Some(mut buffered) = self.buffered.take() else { return };
        if buffered.evictions.as_ref().is_some_and(|e| e.seeks_idle_dies()) {
            self.flush(&mut buffered, cx);
        }
        self.buffered = Some(buffered);
    }

    /// Handles the end of a sampling window.
    pub(super) fn sampled(&mut self, cx: &mut impl Cx<Event, Out>) {
        if let Some(evictions) = self.buffered.as_mut().and_then(|b| b.evictions.as_mut()) {
            evictions.samples = false;
        }
        self.evict_to_idle(cx);
    }

    /// Tells the policy the fill level of the buffer, and places sets that waited for an idle die.
    pub(super) fn before_evictions(&mut self, buffered: &mut Buffered, cx: &mut impl Cx<Event, Out>) {
        let fill = fill(buffered);
        let Some(evictions) = &mut buffered.evictions else { return };
        evictions.policy.pace(cx.now(), &fill);
        evictions.wants_sample = false;
        if let (Some(rule), Some(loads)) = (&evictions.background, &mut evictions.loads) {
            loads.sample(rule, &self.backend, cx.now());
        }
        if evictions.unplaced == 0 {
            return;
        }
        // A flush command does not wait for an idle die.
        let is_asked_for = !buffered.barriers.is_empty() || !buffered.reads.is_empty();
        for assembly in buffered.assemblies_of(Pace::Background) {
            if is_asked_for {
                self.program_assembly(buffered, assembly, cx);
            } else {
                self.place_sets(buffered, assembly, cx);
            }
        }
    }

    /// Schedules a sample at the end of the window, if a set waits for one.
    pub(super) fn after_evictions(&mut self, buffered: &mut Buffered, cx: &mut impl Cx<Event, Out>) {
        let Some(evictions) = &mut buffered.evictions else { return };
        if evictions.wants_sample && !evictions.samples {
            evictions.samples = true;
            let window = evictions.background.map_or(Time::ZERO, |rule| rule.window);
            cx.after(window, Event::Sampled(0));
        }
    }

    /// Next flush that the policy wants begun now.
    pub(super) fn next_eviction(&mut self, buffered: &mut Buffered, now: Time) -> Option<Flush> {
        let fill = fill(buffered);
        let room = buffered.parts.in_flight - fill.flushing;
        let evictions = buffered.evictions.as_mut()?;
        let pace = evictions.policy.pace(now, &fill)?;
        let goes_on = evictions.rest > 0;
        if pace == Pace::Background && !goes_on && !self.may_begin_set(evictions, &fill, room) {
            return None;
        }
        let flush = buffered.buffer.next_flush()?;
        if pace == Pace::Background {
            evictions.rest = if evictions.rest == 0 { evictions.set } else { evictions.rest } - 1;
            evictions.under_way += 1;
            evictions.unplaced += 1;
        }
        buffered.buffer.set_pace(flush.lpn, pace);
        Some(flush)
    }

    /// Returns true if a set may leave in the background: it is available, and some die is idle for which no other set
    /// waits.
    fn may_begin_set(&self, evictions: &mut Evictions, fill: &Fill, room: u32) -> bool {
        let Some(rule) = evictions.background else { return false };
        let after = u64::from(evictions.under_way + evictions.set) * self.unit_bytes;
        let few = evictions.under_way == 0 || after <= rule.at_once;
        if !few || fill.dirty < evictions.set || room < evictions.set {
            return false;
        }
        let wanted = (evictions.unplaced / evictions.set + 1) as usize;
        let found = self.idle_dies(evictions, Stream::Host(0)).take(wanted).count() == wanted;
        evictions.wants_sample |= !found && evictions.loads.is_some();
        found
    }

    /// Positions of the first groups of dies that may take a set now and have space for it, in round-robin order.
    fn idle_dies<'a>(&'a self, evictions: &'a Evictions, stream: Stream) -> impl Iterator<Item = u64> + 'a {
        let geo = &self.ftl.geo;
        let groups = u64::from(geo.groups);
        (evictions.turn..evictions.turn + groups).filter(move |position| {
            let group = geo.group_at(*position);
            let die = geo.first_die_of_group(group);
            let is_idle = match &evictions.loads {
                None => self.backend.load(die) == 0,
                Some(loads) => loads.is_idle[die as usize],
            };
            let mut all = geo.groups_of_die(die);
            is_idle && *all.start() == group && all.any(|group| self.takes_background(group, stream))
        })
    }

    fn takes_background(&self, group: u32, stream: Stream) -> bool {
        !self.is_closed_to_host(group) && self.ftl.can_reserve(group, stream)
    }

    /// Gives complete sets to idle dies, as long as there are both.
    pub(super) fn place_sets(
        &mut self,
        buffered: &mut Buffered,
        assembly: usize,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let stream = buffered.stream_of(assembly);
        loop {
            let Some(evictions) = &mut buffered.evictions else { return };
            if buffered.assemblies[assembly].len() < evictions.set as usize {
                return;
            }
            let Some(position) = self.idle_dies(evictions, stream).next() else { return };
            evictions.turn = position + 1;
            let die = self.ftl.geo.first_die_of_group(self.ftl.geo.group_at(position));
            let planes = self.ftl.geo.shape.planes;
            let groups = self.ftl.geo.groups_of_die(die);
            for group in groups.clone().cycle().take(planes.max(groups.count() as u32) as usize) {
                if !buffered.assemblies[assembly].is_empty() && self.takes_background(group, stream) {
                    self.program_units(buffered, assembly, group, cx);
                }
            }
        }
    }
}
