//! Backside controllers: from a miss to the page in the cache.

use super::inner::Waiter;
use super::spec::COLUMN;
use super::{DramCache, Event, NONE, Out, note};
use engine::{Cx, List, Time};
use proto::memory::{Absent, MemCommand, PAGE};

/// Columns per page.
const COLUMNS: u32 = (PAGE / COLUMN) as u32;

/// Activity of a controller in its miss status row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Search {
    /// No miss waits.
    Idle,
    /// Looks a page up.
    Reading(u64),
    /// Waits for an entry in the page's set.
    Full(u64),
}

/// Missing page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) page: u64,
    pub(super) controller: u16,
    pub(super) step: Step,
    /// True if an access that counts milestones waits for the page; not a write-back or prefetch of the caches in
    /// front.
    pub(super) demand: bool,
    /// True if the page is to be put into the cache.
    admitted: bool,
    /// Application and instruction of the first access.
    pub(super) app: u8,
    pub(super) pc: u32,
    /// Time of the request to flash.
    asked: Time,
    /// True if the page has arrived, from flash or from the evict buffer.
    arrived: bool,
    /// Place of the page in the tags, once it has one.
    pub(super) place: u32,
    /// Columns copied so far, out of the way or into it.
    copied: u32,
    /// Victim of the fetch.
    pub(super) victim: u32,
    /// Requests that wait for the page.
    pub(super) waiting: List,
}

/// Next action of a fetch, or the event it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Waits for its turn.
    Queued,
    /// Writes its entry into the miss status row.
    Enter,
    /// Requests the page from flash.
    Ask,
    /// Reads the tags, to find a victim.
    Look,
    /// Waits for room in the evict buffer.
    Room,
    /// Waits for a way that may be evicted.
    Way,
    /// Takes the victim out of the tags.
    Drop,
    /// Reads the victim.
    Copy,
    /// Sends the victim to flash.
    Store,
    /// Waits for the page.
    Ready,
    /// Writes the page.
    Install,
    /// Writes the tags.
    Tag,
    /// Takes its entry out of the miss status row.
    Remove,
}

impl DramCache {
    /// Fetch of the absent page of a command.
    pub(super) fn missing_page(&mut self, command: &MemCommand, controller: u16) -> u32 {
        let (fetches, admission) = (&mut self.fetches, &mut self.admission);
        let name = *self.missing.entry(command.page).or_insert_with(|| {
            fetches.insert(Fetch {
                page: command.page,
                controller,
                step: Step::Queued,
                demand: false,
                admitted: admission.admits(command.page),
                app: command.app,
                pc: command.pc,
                asked: Time::ZERO,
                arrived: false,
                place: NONE,
                copied: 0,
                victim: NONE,
                waiting: List::EMPTY,
            })
        });
        let fetch = &mut self.fetches[name];
        fetch.demand |= command.demand;
        // Requesters answered without data come back for them.
        fetch.admitted |= command.write || command.absent == Absent::Signal;
        name
    }

    /// Looks up the next page, unless a look-up is under way.
    pub(super) fn start_search(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        let controller = self.controller(number);
        if controller.search != Search::Idle {
            return;
        }
        if let Some(page) = controller.queue.pop_front() {
            self.search(number, page, cx);
            self.unblock(number, cx);
        }
    }

    fn search(&mut self, number: u16, page: u64, cx: &mut impl Cx<Event, Out>) {
        let service = self.back_command;
        let controller = self.controller(number);
        controller.search = Search::Reading(page);
        let end = controller.back.grant(cx.now(), service);
        cx.after(end - cx.now(), Event::Search(number));
    }

    /// Reads the set of a page in the miss status row.
    pub(super) fn look_up(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        let Search::Reading(page) = self.controller(number).search else {
            unreachable!("a look-up is of a page");
        };
        let address = self.layout.misses(number, page);
        self.access_dram(Waiter::Search(number), address, 1, false, cx);
    }

    /// Handles the result of a look-up in the miss status row.
    pub(super) fn searched(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        let Search::Reading(page) = self.controller(number).search else {
            unreachable!("a look-up is of a page");
        };
        let set = self.layout.miss_set(page) as usize;
        // A page without a fetch has arrived meanwhile.
        let fetch = self.missing.get(&page).copied().filter(|name| self.fetches[*name].step == Step::Queued);
        match fetch {
            Some(_) if self.controller(number).entries[set] == self.miss_ways => {
                self.stats.full_misses += 1;
                self.controller(number).search = Search::Full(page);
                return;
            }
            Some(name) => {
                self.controller(number).entries[set] += 1;
                self.step(name, Step::Enter, cx);
            }
            None => self.stats.merged += 1,
        }
        self.controller(number).search = Search::Idle;
        self.start_search(number, cx);
    }

    /// Makes the controller issue a command for a fetch.
    pub(super) fn step(&mut self, name: u32, step: Step, cx: &mut impl Cx<Event, Out>) {
        let fetch = &mut self.fetches[name];
        fetch.step = step;
        let back = &mut self.controllers[usize::from(fetch.controller)].back;
        let end = back.grant(cx.now(), self.back_command);
        cx.after(end - cx.now(), Event::Stepped(name));
    }

    /// Handles a command that the controller has issued for a fetch.
    pub(super) fn stepped(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let Fetch { page, controller: number, step, place, copied, .. } = self.fetches[name];
        let waiter = Waiter::Fetch(name);
        match step {
            Step::Enter => {
                self.access_dram(Waiter::Nobody, self.layout.misses(number, page), 1, true, cx);
                self.step(name, Step::Ask, cx);
            }
            Step::Ask => {
                self.ask(name, cx);
                if self.fetches[name].admitted {
                    self.step(name, Step::Look, cx);
                } else {
                    self.ready(name, cx);
                }
            }
            Step::Look => self.access_dram(waiter, self.layout.tags(number, page), 1, false, cx),
            Step::Drop => {
                self.access_dram(Waiter::Nobody, self.layout.tags(number, page), 1, true, cx);
                self.step(name, Step::Copy, cx);
            }
            Step::Copy | Step::Install => {
                let columns = self.burst_at(copied);
                self.access_dram(waiter, self.layout.way(number, place), columns, step == Step::Install, cx);
            }
            Step::Store => {
                self.store(self.fetches[name].victim, cx);
                self.ready(name, cx);
            }
            Step::Tag => self.access_dram(waiter, self.layout.tags(number, page), 1, true, cx),
            Step::Remove if place == NONE && self.fetches[name].admitted => self.step(name, Step::Look, cx),
            Step::Remove => {
                self.access_dram(Waiter::Nobody, self.layout.misses(number, page), 1, true, cx);
                self.installed(name, cx);
            }
            Step::Queued | Step::Room | Step::Way | Step::Ready => {
                unreachable!("nothing is issued in {step:?}")
            }
        }
    }

    /// Next columns of a page to copy after `copied`.
    fn burst_at(&self, copied: u32) -> u64 {
        let count = self.burst.min(COLUMNS - copied);
        (u64::MAX >> (COLUMNS - count)) << copied
    }

    /// Handles a completed DRAM command of a fetch.
    pub(super) fn moved(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let step = self.fetches[name].step;
        match step {
            Step::Look => self.choose(name, cx),
            Step::Copy | Step::Install => {
                let burst = self.burst;
                let fetch = &mut self.fetches[name];
                fetch.copied = (fetch.copied + burst).min(COLUMNS);
                if fetch.copied < COLUMNS {
                    self.step(name, step, cx);
                } else if step == Step::Copy {
                    self.copied(name, cx);
                } else {
                    self.step(name, Step::Tag, cx);
                }
            }
            Step::Tag => self.step(name, Step::Remove, cx),
            _ => unreachable!("nothing moves in {step:?}"),
        }
    }

    /// Requests a page: from the evict buffer if it is there, else from flash.
    fn ask(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let page = self.fetches[name].page;
        self.fetches[name].asked = cx.now();
        if let Some(leaving) = self.in_buffer(page) {
            self.stats.reclaims += 1;
            note!(self, Reclaim(page));
            if self.leaving[leaving].copied {
                self.come(name, cx);
            } else {
                self.leaving[leaving].reclaimed = name;
            }
            return;
        }
        self.stats.fetches += 1;
        note!(self, Ask(page));
        self.read_page(name, cx);
    }

    /// Handles a page that has come from flash.
    pub(super) fn responded(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        self.stats.responses += 1;
        self.stats.response += cx.now() - self.fetches[name].asked;
        self.come(name, cx);
    }

    /// Handles a page that has arrived.
    pub(super) fn come(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        self.fetches[name].arrived = true;
        if self.fetches[name].step == Step::Ready {
            self.ready(name, cx);
        }
    }

    /// Continues a page that has a free way, or needs none.
    pub(super) fn ready(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let fetch = &mut self.fetches[name];
        fetch.step = Step::Ready;
        fetch.copied = 0;
        if fetch.arrived {
            let is_kept = fetch.place != NONE;
            self.step(name, if is_kept { Step::Install } else { Step::Remove }, cx);
        }
    }

    /// Completes a page that is in the cache, or has arrived and is not put there.
    fn installed(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let Fetch { page, controller: number, asked, place, mut waiting, .. } = self.fetches[name];
        self.fetches.remove(name);
        self.missing.remove(&page);
        let set = self.layout.miss_set(page);
        self.controller(number).entries[set as usize] -= 1;
        if place == NONE {
            self.stats.bypasses += 1;
            while let Some(request) = self.waiters.pop(&mut waiting) {
                self.pass(request, cx);
            }
            note!(self, Bypass(page));
        } else {
            self.stats.installs += 1;
            note!(self, Install(page));
            self.controller(number).tags.meta_mut(place).coming = false;
            cx.emit(Out::Arrived { page, response: cx.now() - asked });
            while let Some(request) = self.waiters.pop(&mut waiting) {
                self.serve(request, place, cx);
            }
            self.may_go(number, place, cx);
        }
        if let Search::Full(waiting) = self.controller(number).search
            && self.layout.miss_set(waiting) == set
        {
            self.search(number, waiting, cx);
        }
    }
}
