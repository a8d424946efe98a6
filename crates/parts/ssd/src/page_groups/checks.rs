//! Checks that hold between any two events. Each side of an equation is counted in another part.

use super::GroupsFlash;
use super::access::Purpose;
use crate::check::Check;
use nand::dies::op::Class;

/// What has happened since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Reads and writes.
    pub(super) requests: u64,
    pub(super) answered: u64,
    /// Groups of them.
    pub(super) asked: u64,
    pub(super) done: u64,
    /// Groups that kernels have programmed.
    pub(super) written: u64,
    pub(super) locks: u64,
    pub(super) unlocks: u64,
    /// Steps of Storengine's.
    pub(super) steps: u64,
    pub(super) steps_done: u64,
}

impl GroupsFlash {
    /// Whether what was counted in one place agrees with what was counted in another.
    pub fn checks(&self) -> Vec<Check> {
        let ledger = &self.ledger;
        let open: u64 = self.requests.live().map(|(_, request)| u64::from(request.open())).sum();
        let held = self.sections.live().filter(|(_, section)| section.is_held).count() as u64;
        let mut checks = vec![
            Check::equal(
                "every read and write is answered once",
                [
                    ("asked", ledger.requests),
                    ("answered and under way", ledger.answered + self.requests.len() as u64),
                ],
            ),
            Check::equal(
                "every group that is asked for is read or written once",
                [("asked", ledger.asked), ("done and under way", ledger.done + open)],
            ),
            Check::equal(
                "every section is given back once",
                [
                    ("asked", ledger.locks),
                    ("given back, held and waiting", ledger.unlocks + self.sections.len() as u64),
                ],
            ),
            Check::equal(
                "every step of Storengine's is performed once",
                [
                    ("begun", ledger.steps),
                    ("performed and under way", ledger.steps_done + self.chores.len() as u64),
                ],
            ),
            self.sections_are_locked(held),
        ];
        checks.extend(self.media_checks());
        if let Some((media, link)) = self.backend.meter.as_ref().zip(self.link.meter.as_ref()) {
            let detail = "by activity, and over time".to_owned();
            checks.push(Check::new(
                "two accounts of energy agree",
                media.conserves() && link.conserves(),
                detail,
            ));
        }
        if let Some(shadow) = &self.shadow {
            let detail = format!("{} of {} reads were wrong", shadow.wrong, shadow.checked);
            checks.push(Check::new("reads bring what was written last", shadow.wrong == 0, detail));
        }
        checks
    }

    /// Storengine may have locks, too.
    fn sections_are_locked(&self, held: u64) -> Check {
        let (locked, waiting) = self.visor.locks.counts();
        let wait = self.sections.len() as u64 - held;
        let ok = held <= u64::from(locked) && wait <= u64::from(waiting);
        let detail = format!("{held} sections of {locked} locks held, {wait} of {waiting} waiting");
        Check::new("every section has its lock", ok, detail)
    }

    fn media_checks(&self) -> [Check; 4] {
        let alike = u64::from(self.media.alike.pages());
        let done = |class: Class| self.backend.counters.done[class as usize] * alike;
        let (mut writes, mut erased, mut programmed) = (0, 0, 0);
        for (_, access) in self.accesses.live() {
            let all = self.media.group_pages;
            match (access.class, access.purpose) {
                (Class::Erase, _) => {
                    erased += u64::from(all * self.media.spread) - u64::from(access.left) * alike;
                }
                (Class::HostRead | Class::GcRead, _) => {}
                (_, purpose) => {
                    writes += u64::from(matches!(purpose, Purpose::Write { .. }));
                    programmed += u64::from(access.left) * alike;
                }
            }
        }
        let pages = u64::from(self.media.group_pages);
        let counters = &self.visor.counters;
        let programs = done(Class::HostProgram) + done(Class::MapProgram) + done(Class::GcProgram);
        [
            Check::equal(
                "every number that is handed out is programmed once",
                [("handed out", counters.writes), ("programmed and under way", self.ledger.written + writes)],
            ),
            Check::equal(
                "every page that dies read crosses the link",
                [
                    ("read", done(Class::HostRead) + done(Class::GcRead)),
                    ("crossed", self.link.inward.grants() * alike),
                ],
            ),
            Check::equal(
                "every group that crosses the link is programmed",
                [
                    ("pages crossed", self.link.outward.grants() * pages),
                    ("programmed and under way", programs + programmed),
                ],
            ),
            Check::equal(
                "every block is erased as a whole",
                [
                    ("of blocks", counters.erases * pages * u64::from(self.media.spread)),
                    ("by dies", done(Class::Erase) - erased),
                ],
            ),
        ]
    }
}
