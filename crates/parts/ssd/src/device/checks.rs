//! Checks that hold at the end of every run, and between any two of its events. The two sides of an equation are
//! counted in different components.

use super::buffered::{Buffered, Place};
use super::{Active, Device};
use crate::check::Check;
use crate::shadow::Audit;
use engine::{Slab, Time};
use ftl::page_map::{Ftl, FtlCounters};
use nand::dies::BackendCounters;
use nand::dies::op::Class;
use proto::Lpn;

/// Counts of the device since its first command.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    submitted: u64,
    pub(super) completed: u64,
    /// Commands among these from before the measured window.
    before_window: u64,
    /// Read operations queued for commands.
    pub(super) read_ops: u64,
    /// Reads under way, among these, for which no page is pinned: they only take time.
    pub(super) absent_reads: u64,
    /// Programs and copy-backs queued, without parity.
    pub(super) program_ops: u64,
    /// Programs of parity queued.
    pub(super) parity_ops: u64,
    /// Counters of the FTL at the first command: preconditioning.
    opening: FtlCounters,
}

engine::snapshot!(Ledger {
    submitted,
    completed,
    before_window,
    read_ops,
    program_ops,
    parity_ops,
    absent_reads,
    opening
});

impl Ledger {
    /// Counts a submitted command.
    #[inline]
    pub(super) fn submitted(&mut self, ftl: &Ftl) {
        if self.submitted == 0 {
            self.opening = ftl.counters;
        }
        self.submitted += 1;
    }

    /// Counters of the FTL due to preconditioning: all of them until a command has reached the device.
    fn opening(&self, ftl: &Ftl) -> FtlCounters {
        if self.submitted == 0 { ftl.counters } else { self.opening }
    }

    /// Begins the measured window.
    pub(super) fn begin_window(&mut self) {
        self.before_window = self.completed;
    }

    fn commands(&self, active: &Slab<Active>) -> Check {
        let inside = active.len() as u64;
        let sides = [("submitted", self.submitted), ("completed or in flight", self.completed + inside)];
        Check::equal("commands", sides)
    }
}

impl Device {
    /// Compares the accounts of all components at `now`. Takes O(blocks), and with a shadow O(map units touched).
    pub fn checks(&self, now: Time) -> Vec<Check> {
        self.checks_unless(now, &|| false)
    }

    /// As [`Device::checks`], but long checks are abandoned, and fail, once `stop` returns true.
    pub fn checks_unless(&self, now: Time, stop: &dyn Fn() -> bool) -> Vec<Check> {
        let mut checks = vec![self.ledger.commands(&self.active)];
        checks.extend(self.check_flows());
        checks.extend(self.check_space());
        checks.push(self.check_reads());
        checks.extend(self.check_retries());
        checks.extend(self.check_look_ahead());
        checks.push(self.check_busy(now));
        checks.push(self.check_array_time());
        let (most, limit) = self.backend.suspends();
        let detail = format!("an operation was suspended {most} times; the limit is {limit}");
        checks.push(Check::new("suspends", most <= limit, detail));
        checks.extend(self.check_energy(now));
        checks.extend(self.check_buffer());
        checks.extend(self.check_registers());
        let milestones = [&self.stats.reads, &self.stats.writes, &self.stats.others];
        let untiled = milestones.iter().find_map(|b| b.check().err());
        let tasks: u64 = milestones.iter().map(|b| b.tasks()).sum();
        let answered = self.ledger.completed - self.ledger.before_window;
        checks
            .push(Check::equal("recorded", [("latencies recorded", tasks), ("commands answered", answered)]));
        let detail = untiled.map_or_else(|| format!("{tasks} commands"), |u| u.to_string());
        checks.push(Check::new("milestones", untiled.is_none(), detail));
        let little = self.backend.queued.check(now, self.backend.waiting_since()).err();
        let detail = little
            .map_or_else(|| format!("{} operations", self.backend.queued.arrivals()), |v| v.to_string());
        checks.push(Check::new("little", little.is_none(), detail));
        checks.extend(self.check_shadow(stop));
        checks
    }

    /// Compares two accounts of the same energy, and the energy of busy dies with their busy time.
    fn check_energy(&self, now: Time) -> Vec<Check> {
        let Some(energy) = self.energy(now) else { return Vec::new() };
        let series = energy.series.total();
        let detail = format!("{} aJ by activity, {series} aJ over time", energy.total());
        let dies = self.window_busy(now).1.into_iter().fold(Time::ZERO, |sum, busy| sum + busy);
        let expected = self.backend.meter.as_ref().map(|meter| meter.die_busy(dies));
        let spent = energy.of("die busy");
        let erases = self.window_counters().0.done[Class::Erase as usize];
        let due = self.backend.meter.as_ref().map(|meter| meter.erases(erases));
        let erased = energy.of("erase");
        // Before the window, an operation may have been counted at its beginning and its energy spent at its end.
        let whole = self.stats.origin.backend == BackendCounters::default();
        let due_for_pages = self.backend.due_for_pages().filter(|_| whole);
        let names = [("read", "read_energy"), ("program", "program_energy")];
        let pages = due_for_pages.into_iter().flatten().zip(names).map(|(due, (name, check))| {
            let spent = energy.of(name);
            Check::new(check, spent == due, format!("{spent} aJ spent, {due} aJ expected from the counts"))
        });
        let mut checks = vec![
            Check::new("energy", energy.conserves(), detail),
            Check::new("die_energy", expected == Some(spent), format!("{spent} aJ for {dies} of busy dies")),
            Check::new(
                "erase_energy",
                due == Some(erased),
                format!("{erased} aJ for {erases} erased blocks"),
            ),
        ];
        checks.extend(pages);
        checks
    }

    /// Compares the operations of the back end with the records of the FTL.
    fn check_flows(&self) -> [Check; 5] {
        let (ftl, opening) = (&self.ftl.counters, self.ledger.opening(&self.ftl));
        let (units, done) = (&self.backend.counters.units, &self.backend.counters.done);
        let voided = self.buffered.as_ref().map_or(0, |b| b.buffer.counters().flushes_discarded);
        let host =
            ftl.host_commits + ftl.merges_dropped + voided - opening.host_commits - opening.merges_dropped;
        let moved = ftl.moves + ftl.moves_dropped - opening.moves - opening.moves_dropped;
        let lanes = u64::from(self.ftl.geo.lanes);
        let erased = (ftl.erases - opening.erases) * lanes;
        let under_way: u64 = self.jobs.iter().flatten().map(|j| u64::from(j.erased(lanes as u32))).sum();
        let worn: u64 = self.ftl.array.all_erases().iter().map(|e| u64::from(*e)).sum();
        let programmed = |class: Class| ("units programmed", units[class as usize]);
        [
            Check::equal(
                "host_programs",
                [programmed(Class::HostProgram), ("units committed or dropped", host)],
            ),
            Check::equal(
                "map_programs",
                [
                    programmed(Class::MapProgram),
                    ("translation pages committed", ftl.map_commits - opening.map_commits),
                ],
            ),
            Check::equal("gc_programs", [programmed(Class::GcProgram), ("units moved or dropped", moved)]),
            Check::equal(
                "erases",
                [
                    ("blocks erased", done[Class::Erase as usize]),
                    ("blocks of units released or under way", erased + under_way),
                ],
            ),
            Check::equal(
                "wear",
                [("erase counts of all blocks", worn), ("blocks of units released", ftl.erases * lanes)],
            ),
        ]
    }

    /// Compares registers with buffer lines, and checks that no register is lost.
    fn check_registers(&self) -> Vec<Check> {
        let Some(Buffered { buffer, place: Place::Registers(registers), .. }) = &self.buffered else {
            return Vec::new();
        };
        let (held, [accounted, all]) = registers.account();
        let lines = buffer.held().len() as u64;
        vec![
            Check::equal("register_lines", [("units in the buffer", lines), ("units in registers", held)]),
            Check::equal("registers", [("held and free", accounted), ("in all planes", all)]),
        ]
    }

    /// Compares the units taken by the buffer with the back end's programs of them.
    fn check_buffer(&self) -> Option<Check> {
        let buffer = &self.buffered.as_ref()?.buffer;
        let counters = buffer.counters();
        let programmed = self.backend.counters.units[Class::HostProgram as usize];
        let saved = counters.writes_absorbed + counters.drops;
        let sides = [
            ("units taken", counters.writes),
            (
                "units programmed, overwritten or dropped in the buffer, or left there",
                programmed + saved + buffer.left().0,
            ),
        ];
        Some(Check::equal("buffered_writes", sides))
    }

    /// Checks that every read was sensed, found its page in a register, or shared a sensing.
    fn check_reads(&self) -> Check {
        let counted = &self.backend.counters;
        let served = counted.senses + counted.register_hits + counted.joined_reads;
        let sides = [counted.reads_queued, served + self.backend.reads_waiting()];
        Check::equal("reads", [("queued", sides[0]), ("sensed, in a register, joined or waiting", sides[1])])
    }

    /// Compares retry steps due with retry steps begun.
    fn check_retries(&self) -> Option<Check> {
        let (due, begun) = self.backend.retries()?;
        Some(Check::equal("retries", [("steps found to be needed", due), ("begun or to come", begun)]))
    }

    /// Checks reclaim units and their contents.
    fn check_space(&self) -> Vec<Check> {
        let census = self.ftl.census();
        let done = &self.backend.counters.done;
        let of = |classes: &[Class]| classes.iter().map(|c| done[*c as usize]).sum::<u64>();
        let reads = of(&Class::ALL[..=Class::AheadRead as usize]);
        let programs = of(&[Class::HostProgram, Class::MapProgram, Class::GcProgram]);
        let of_data = programs - (self.ledger.parity_ops - self.parity.programs);
        let [free, open, full, closed, collecting, bad, cached] = census.states;
        let closed = closed + cached;
        let jobs = self.jobs.iter().flatten().count() as u64;
        let states = [free, open, closed, collecting, bad, free + open + full + closed + collecting + bad];
        let lists = [
            census.listed_free,
            census.frontiers,
            census.listed_closed + census.listed_cached,
            jobs,
            census.listed_bad,
            self.ftl.geo.ru_count,
        ];
        vec![
            Check::equal(
                "pins",
                [
                    ("readers of reclaim units", census.readers),
                    (
                        "reads and programs of parity under way",
                        self.ledger.read_ops + self.reads_in_rebuild() + self.parity.programs
                            - reads
                            - self.ledger.absent_reads,
                    ),
                ],
            ),
            Check::equal(
                "programs_in_flight",
                [
                    ("program units given out", census.inflight),
                    ("programs under way", self.ledger.program_ops - of_data),
                ],
            ),
            Check::equal(
                "groups",
                [("expected", 0), ("groups that miscount their valid units", census.miscounted)],
            ),
            Check::equal("valid_units", [("valid", census.valid), ("mapped", self.units_on_flash())]),
            Check::new(
                "reclaim_units",
                states == lists,
                format!("free, open, closed, collecting, bad, all: by state {states:?}, by list {lists:?}"),
            ),
            Check::new(
                "block_programs",
                census.misprogrammed == 0,
                format!("{} reclaim units hold data in slots that were not given out", census.misprogrammed),
            ),
        ]
    }

    /// Number of logical units that hold data, including translation pages.
    fn units_on_flash(&self) -> u64 {
        let pages = self.ftl.logical()..self.ftl.logical() + self.ftl.hidden();
        self.ftl.mapped() + pages.filter(|page| self.ftl.lookup(Lpn(*page)).is_some()).count() as u64
    }

    /// Checks that no resource is busy longer than the elapsed time.
    fn check_busy(&self, now: Time) -> Check {
        let (link, cores) = self.host_busy(now);
        let core = Time::from_ps(cores.ps().div_ceil(self.host.cores() as u64));
        let channels = self.backend.channel_busy(now);
        let dies = self.backend.die_busy(now);
        busy(now, channels.into_iter().chain(dies).chain(link.each()).chain([core]))
    }

    /// Checks that suspends cost what the spec says, and that no work is done twice.
    fn check_array_time(&self) -> Check {
        let (worked, due) = self.backend.array_time();
        Check::new("array_time", worked == due, format!("worked {worked}, expected with suspends {due}"))
    }

    fn check_shadow(&self, stop: &dyn Fn() -> bool) -> Vec<Check> {
        let Some(shadow) = &self.shadow else { return Vec::new() };
        let first = shadow.described.first().map_or("", String::as_str);
        let detail =
            format!("{} units read, {} violations. {first}", shadow.units_checked, shadow.violations);
        let buffered = |lpn| self.buffered.as_ref().map_or(0, |b| b.buffer.present(lpn));
        let units = shadow.audit(&self.ftl, buffered, stop);
        let recount = self.ftl.recount_valid();
        let counted = match recount {
            Ok(units) => format!("{units} units"),
            Err(ru) => format!("reclaim unit {ru} miscounts its valid slots"),
        };
        let mut checks = vec![
            Check::new("shadow_reads", shadow.violations == 0, detail.trim_end().to_owned()),
            audited("shadow_units", &units, "units", "hold data that must not be read from them"),
            Check::new("valid_slots", recount == Ok(self.units_on_flash()), counted),
        ];
        if let Some((opens, wrong, first)) = self.ftl.opened() {
            let detail = format!("{wrong} of {opens} opens chose the wrong unit. {first}");
            checks.push(Check::new("opened_units", wrong == 0, detail.trim_end().to_owned()));
        }
        if self.ftl.keeps_apart() {
            let audit = shadow.audit_placements(&self.ftl);
            let detail = match audit {
                Ok(units) => format!("{units} units"),
                Err((units, first)) => {
                    format!("{units} units are among data of a different placement, first unit {first}")
                }
            };
            checks.push(Check::new("shadow_placements", audit.is_ok(), detail));
        }
        if let Some(translation) = &self.translation {
            let entries = shadow.audit_map(&self.ftl, |lpn| translation.knows(lpn), stop);
            checks.push(audited("shadow_map", &entries, "entries", "are out of date"));
        }
        checks
    }
}

/// Converts an audit to a check.
fn audited(name: &'static str, audit: &Audit, what: &str, wrong: &str) -> Check {
    let detail = match audit {
        Audit::Fine(count) => format!("{count} {what}"),
        Audit::Wrong(count, first) => format!("{count} {what} {wrong}: {first}"),
        Audit::Interrupted => "incomplete: interrupted".to_owned(),
    };
    Check::new(name, matches!(audit, Audit::Fine(_)), detail)
}

/// Compares the busy times of resources with the elapsed time.
fn busy(now: Time, resources: impl Iterator<Item = Time>) -> Check {
    let most = resources.max().unwrap_or(Time::ZERO);
    Check::new("busy", most <= now, format!("busiest {most}, elapsed {now}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::{Combination, Host, Memory};
    use ftl::buffer::BufferCounters;
    use ftl::page_map::units::RuState;
    use proto::Slot;
    use stats::Milestones;

    /// Names of the checks that fail once the state of a used device has been falsified.
    fn falsified(falsify: impl FnOnce(&mut Device, Time)) -> Vec<&'static str> {
        falsified_of(&Combination::plain(), falsify)
    }

    /// As `falsified`, in a device of a different kind.
    fn falsified_of(kind: &Combination, falsify: impl FnOnce(&mut Device, Time)) -> Vec<&'static str> {
        let mut device = kind.build(1).expect("it can be built");
        device.attach_shadow();
        let mut host = Host::new(device, 1, 16);
        host.drive(20_000);
        assert_eq!(host.failed, []);
        let now = host.now();
        falsify(&mut host.device, now);
        host.device.checks(now).iter().filter(|c| !c.ok).map(|c| c.name).collect()
    }

    /// Returns a free reclaim unit of group 0.
    fn free_unit(device: &Device) -> u32 {
        let free = device.ftl.groups[0].rus.iter().position(|ru| ru.state == RuState::Free);
        free.expect("something is free") as u32
    }

    #[test]
    fn every_count_is_held_against_another() {
        assert_eq!(falsified(|_, _| ()), [""; 0]);
        assert_eq!(falsified(|d, _| d.ledger.completed += 1), ["commands", "recorded"]);
        assert_eq!(falsified(|d, _| d.ftl.counters.host_commits += 1), ["host_programs"]);
        assert_eq!(falsified(|d, _| d.ftl.counters.merges_dropped += 1), ["host_programs"]);
        assert_eq!(falsified(|d, _| d.ftl.counters.moves += 1), ["gc_programs"]);
        assert_eq!(falsified(|d, _| d.backend.counters.done[Class::Erase as usize] += 1), ["erases"]);
        assert_eq!(falsified(|d, _| d.ftl.pin(Slot(0))), ["pins"]);
        assert_eq!(falsified(|d, _| d.ledger.program_ops += 1), ["programs_in_flight"]);
        assert_eq!(falsified(|d, now| d.backend.queued.arrive(now)), ["little"]);
        assert_eq!(falsified(|d, _| d.backend.counters.senses += 1), ["reads"]);
        assert_eq!(falsified(|d, _| d.backend.counters.joined_reads += 1), ["reads"]);
    }

    #[test]
    fn reads_are_repeated_as_often_as_they_must_be() {
        let erring = Combination { errors: true, ..Combination::plain() };
        assert_eq!(falsified_of(&erring, |_, _| ()), [""; 0]);
        assert_eq!(falsified_of(&erring, |d, _| d.backend.counters.retry_steps += 1), ["retries"]);
    }

    #[test]
    fn what_a_buffer_takes_is_programmed_overwritten_dropped_or_there() {
        let buffered = Combination { memory: Memory::WriteBack, ..Combination::plain() };
        let counters = |d: &mut Device, change: fn(&mut BufferCounters)| {
            change(d.buffered.as_mut().expect("a buffer").buffer.counters_mut());
        };
        assert_eq!(falsified_of(&buffered, |_, _| ()), [""; 0]);
        let changes: [fn(&mut BufferCounters); 3] =
            [|c| c.writes += 1, |c| c.writes_absorbed += 1, |c| c.drops += 1];
        for change in changes {
            assert_eq!(falsified_of(&buffered, |d, _| counters(d, change)), ["buffered_writes"]);
        }
    }

    #[test]
    fn space_is_counted_in_two_ways() {
        let unit = |d: &Device| d.ftl.geo.block_of_ru(u64::from(free_unit(d)), 0);
        let erased = falsified(|d, _| d.ftl.array.erase(unit(d)));
        assert_eq!(erased, ["wear"]);
        let programmed = falsified(|d, _| d.ftl.array.program(d.ftl.geo.first_slot(unit(d)), &d.ftl.geo));
        assert_eq!(programmed, ["block_programs"]);
        let retired = falsified(|d, _| {
            let unit = free_unit(d) as usize;
            d.ftl.groups[0].rus[unit].state = RuState::Bad;
        });
        assert_eq!(retired, ["reclaim_units"]);
        let valid = falsified(|d, _| d.ftl.groups[0].rus[0].valid += 1);
        assert_eq!(valid, ["groups", "valid_units", "valid_slots"]);
    }

    #[test]
    fn times_and_data_are_compared() {
        let untiled = falsified(|d, now| d.stats.reads.record(&Milestones::new(Time::ZERO), now));
        assert_eq!(untiled, ["recorded", "milestones"]);
        let swapped = falsified(|d, _| {
            let mut mapped = (0..).map(Lpn).filter_map(|lpn| Some((lpn, d.ftl.lookup(lpn)?)));
            let (first, second) = (mapped.next(), mapped.next());
            if let (Some((a, of_a)), Some((b, of_b))) = (first, second) {
                d.ftl.commit(a, of_b);
                d.ftl.commit(b, of_a);
                d.ftl.counters.host_commits -= 2;
            }
        });
        assert_eq!(swapped, ["shadow_units"]);
        let us = Time::from_us;
        assert!(busy(us(5), [us(3), us(5)].into_iter()).ok);
        assert!(!busy(us(5), [us(6), us(5)].into_iter()).ok);
    }
}
