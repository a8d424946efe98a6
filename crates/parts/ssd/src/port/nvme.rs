//! NVMe: submission queues and their arbitration (NVM Express base specification 2.0, section 3.4.4) behind a link.

use super::interface::{Entry, LinkBusy, Protocol};
use engine::{Flags, Snapshot, Ticket, Time};
use net::pcie::Link;
use stats::EnergyReport;
use std::collections::VecDeque;

/// Size of a completion queue entry, in bytes.
const COMPLETION_BYTES: u64 = 16;

/// Queues and times.
#[derive(Clone, Debug)]
pub struct NvmeParams {
    /// Number of submission queues.
    pub queues: u16,
    /// Entries of each submission queue.
    pub depth: u32,
    /// Commands that the controller holds at once, over all queues.
    pub in_controller: u32,
    /// Arbitration: the submission queue that is fetched from next.
    pub arbitration: Arbitration,
    /// Time from doorbell write to fetch request, beyond the link's latency.
    pub doorbell: Time,
    /// Time from fetch request to command in the controller, beyond the link's round trip.
    pub fetch: Time,
    /// Time from writing the completion entry until host software runs.
    pub interrupt: Time,
}

/// NVMe queues behind a link.
#[derive(Clone, Debug)]
pub struct NvmePort {
    link: Link,
    queues: Nvme,
    /// Time from the doorbell to the controller, and from there until the command has been fetched.
    doorbell: Time,
    fetch: Time,
    interrupt: Time,
    /// True if nothing can hold a command back in its submission queue: its doorbell is folded into its fetch.
    folds: bool,
}

impl NvmePort {
    /// Creates an idle port. With `fold`, the doorbell is folded into the fetch where nothing can intervene.
    pub fn new(link: Link, params: NvmeParams, fold: bool) -> NvmePort {
        let NvmeParams { queues, depth, in_controller, arbitration, doorbell, fetch, interrupt } = params;
        let latency = link.latency();
        NvmePort {
            link,
            queues: Nvme::new(queues, in_controller, arbitration),
            doorbell: latency + doorbell,
            fetch: latency.times(2) + fetch,
            interrupt: latency + interrupt,
            folds: fold && u64::from(in_controller) >= u64::from(queues) * u64::from(depth),
        }
    }
}

impl Protocol for NvmePort {
    #[inline]
    fn enters(&mut self, queue: u16, id: u32, reserve: impl FnOnce() -> Ticket) -> Entry {
        if self.folds {
            return Entry::Fetched(self.doorbell + self.fetch);
        }
        self.queues.ring(queue, id, reserve());
        Entry::Rings(self.doorbell)
    }

    fn doorbell(&mut self, queue: u16) {
        self.queues.arrive(queue);
    }

    fn fetch(&mut self, _now: Time) -> Option<(u32, Ticket, Time)> {
        let (id, place) = self.queues.fetch()?;
        Some((id, place, self.fetch))
    }

    #[inline]
    fn data_in(&mut self, now: Time, bytes: u64) -> Time {
        self.link.to_device(now, bytes) + self.link.latency()
    }

    #[inline]
    fn data_out(&mut self, now: Time, bytes: u64) {
        self.link.to_host(now, bytes);
    }

    #[inline]
    fn completes(&mut self, now: Time) -> Time {
        self.link.to_host(now, COMPLETION_BYTES) + self.interrupt
    }

    #[inline]
    fn leaves(&mut self, queue: u16) -> bool {
        if !self.folds {
            self.queues.done(queue);
        }
        !self.folds
    }

    fn busy(&self, now: Time) -> LinkBusy {
        LinkBusy::of(&self.link, now)
    }

    fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.link.energy(now)
    }

    fn carried(&self) -> Option<[u64; 2]> {
        self.link.carried()
    }

    fn reset_energy(&mut self, now: Time) {
        self.link.reset_energy(now);
    }

    fn save(&self, out: &mut Vec<u8>) {
        let NvmePort { link, queues, doorbell: _, fetch: _, interrupt: _, folds: _ } = self;
        link.save(out);
        queues.save(out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.link.load(input)?;
        self.queues.load(input)
    }
}

/// Arbitration between submission queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// Queues take turns; each turn fetches at most `burst` commands.
    RoundRobin {
        /// Commands per turn.
        burst: u32,
    },
    /// An urgent class with strict priority, then high, medium and low by weight; round robin inside a class.
    Weighted {
        /// Commands per turn.
        burst: u32,
        /// Commands of the high, medium and low class per round.
        weights: [u32; 3],
        /// Class of each queue: 0 urgent, 1 high, 2 medium, 3 low. Queues beyond the list are medium.
        classes: Vec<u8>,
    },
}

impl Arbitration {
    fn class(&self, queue: usize) -> usize {
        match self {
            Arbitration::RoundRobin { .. } => 0,
            Arbitration::Weighted { classes, .. } => usize::from(*classes.get(queue).unwrap_or(&2)),
        }
    }
    fn burst(&self) -> u32 {
        match self {
            Arbitration::RoundRobin { burst } | Arbitration::Weighted { burst, .. } => (*burst).max(1),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct SubmissionQueue {
    entries: VecDeque<(u32, Ticket)>,
    /// Entries whose doorbell the controller has seen.
    visible: u32,
}

#[derive(Clone, Debug, Default)]
struct ClassState {
    queues: Vec<usize>,
    /// Queues of `queues` that have visible entries, by their place in it.
    visible: Flags,
    turn: usize,
    /// Commands left in the present turn.
    left: u32,
    /// Commands left for the class in the present round.
    credit: u32,
}

/// Submission queues as seen by the controller.
#[derive(Clone, Debug)]
struct Nvme {
    queues: Vec<SubmissionQueue>,
    /// Class of each queue, and its place in that class.
    places: Vec<(usize, usize)>,
    classes: Vec<ClassState>,
    arbitration: Arbitration,
    limit: u32,
    inside: u32,
}

impl Nvme {
    fn new(queues: u16, limit: u32, arbitration: Arbitration) -> Nvme {
        let mut classes = vec![ClassState::default(); 4];
        let mut places = Vec::new();
        for queue in 0..usize::from(queues) {
            let class = arbitration.class(queue);
            places.push((class, classes[class].queues.len()));
            classes[class].queues.push(queue);
        }
        for class in &mut classes {
            class.visible = Flags::new(class.queues.len());
        }
        Nvme {
            queues: vec![SubmissionQueue::default(); usize::from(queues)],
            places,
            classes,
            arbitration,
            limit,
            inside: 0,
        }
    }

    /// Adds a command that the host has put into a queue.
    fn ring(&mut self, queue: u16, id: u32, place: Ticket) {
        self.queues[usize::from(queue)].entries.push_back((id, place));
    }

    /// Handles an arrived doorbell write.
    fn arrive(&mut self, queue: u16) {
        let queue = usize::from(queue);
        self.queues[queue].visible += 1;
        let (class, place) = self.places[queue];
        self.classes[class].visible.insert(place);
    }

    /// Handles a command that has left the controller.
    fn done(&mut self, _queue: u16) {
        self.inside -= 1;
    }

    /// Next command to fetch, if the controller has room for one.
    fn fetch(&mut self) -> Option<(u32, Ticket)> {
        if self.inside >= self.limit {
            return None;
        }
        let class = self.next_class()?;
        let queue = self.next_queue(class)?;
        let sq = &mut self.queues[queue];
        sq.visible -= 1;
        if sq.visible == 0 {
            let place = self.places[queue].1;
            self.classes[class].visible.remove(place);
        }
        self.inside += 1;
        sq.entries.pop_front()
    }

    /// Appends the round-robin positions. The queues are empty: nothing is outstanding.
    fn save(&self, out: &mut Vec<u8>) {
        let Nvme { queues: _, places: _, classes, arbitration: _, limit: _, inside: _ } = self;
        for ClassState { queues: _, visible: _, turn, left, credit } in classes {
            (*turn, (*left, *credit)).save(out);
        }
    }

    /// Restores the round-robin positions; `None` if they are truncated or malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        for class in &mut self.classes {
            (class.turn, (class.left, class.credit)) = Snapshot::load(input)?;
        }
        Some(())
    }

    fn has_work(&self, class: usize) -> bool {
        !self.classes[class].visible.is_empty()
    }

    fn next_class(&mut self) -> Option<usize> {
        let Arbitration::Weighted { weights, .. } = &self.arbitration else {
            return self.has_work(0).then_some(0);
        };
        if self.has_work(0) {
            return Some(0);
        }
        let weights = *weights;
        // A second look after a new round has begun.
        for _ in 0..2 {
            for class in 1..4 {
                if self.classes[class].credit > 0 && self.has_work(class) {
                    self.classes[class].credit -= 1;
                    return Some(class);
                }
            }
            for class in 1..4 {
                self.classes[class].credit = weights[class - 1].max(1);
            }
        }
        None
    }

    fn next_queue(&mut self, class: usize) -> Option<usize> {
        let burst = self.arbitration.burst();
        let state = &mut self.classes[class];
        if state.left == 0 || state.visible.next(state.turn) != Some(state.turn) {
            // Next entry in the ring; the entry itself, if it is the only one.
            state.turn = state.visible.next(state.turn + 1).or_else(|| state.visible.next(0))?;
            state.left = burst;
        }
        state.left -= 1;
        Some(state.queues[state.turn])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::EventQueue;

    fn filled(queues: u16, each: u32, arbitration: Arbitration) -> Nvme {
        let mut places = EventQueue::<u32>::new();
        let mut nvme = Nvme::new(queues, u32::MAX, arbitration);
        for queue in 0..queues {
            for n in 0..each {
                nvme.ring(queue, u32::from(queue) * 100 + n, places.reserve());
                nvme.arrive(queue);
            }
        }
        nvme
    }

    fn order(nvme: &mut Nvme, count: usize) -> Vec<u32> {
        std::iter::from_fn(|| nvme.fetch().map(|(id, _)| id / 100)).take(count).collect()
    }

    /// Next queue by examining each in turn, and the turn after it.
    fn looked_at(visible: &[u32], (mut turn, mut left): (usize, u32), burst: u32) -> Option<(usize, u32)> {
        for _ in 0..=visible.len() {
            if left > 0 && visible[turn] > 0 {
                return Some((turn, left - 1));
            }
            turn = (turn + 1) % visible.len();
            left = burst;
        }
        None
    }

    #[test]
    fn turns_are_those_of_a_look_at_each_queue() {
        let mut places = EventQueue::<u32>::new();
        for (queues, burst) in [(1u16, 1), (3, 2), (64, 1), (130, 3)] {
            let mut rng = engine::Rng::stream(queues.into(), "turns");
            let mut nvme = Nvme::new(queues, u32::MAX, Arbitration::RoundRobin { burst });
            let mut visible = vec![0; queues.into()];
            let mut state = (0, 0);
            for _ in 0..4_000 {
                if rng.below(2) == 0 {
                    let queue = rng.below(queues.into()) as u16;
                    nvme.ring(queue, queue.into(), places.reserve());
                    nvme.arrive(queue);
                    visible[usize::from(queue)] += 1;
                } else {
                    let expected = looked_at(&visible, state, burst);
                    assert_eq!(nvme.fetch().map(|(id, _)| id as usize), expected.map(|(queue, _)| queue));
                    if let Some(taken) = expected {
                        visible[taken.0] -= 1;
                        state = taken;
                    }
                }
            }
        }
    }

    #[test]
    fn round_robin_takes_turns_of_a_burst() {
        let mut nvme = filled(3, 4, Arbitration::RoundRobin { burst: 2 });
        let got = order(&mut nvme, 12);
        assert_eq!(got.len(), 12);
        // Whatever queue begins, turns are pairs of commands of one queue, and every queue has its turn before any has
        // two.
        let turns: Vec<u32> = got
            .chunks(2)
            .map(|c| {
                assert_eq!(c[0], c[1]);
                c[0]
            })
            .collect();
        let mut first: Vec<u32> = turns[..3].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2]);
        assert_eq!(turns[..3], turns[3..]);
    }

    #[test]
    fn urgent_goes_first_and_the_rest_by_weight() {
        let arbitration = Arbitration::Weighted { burst: 1, weights: [4, 2, 1], classes: vec![0, 1, 2, 3] };
        let mut nvme = filled(4, 20, arbitration);
        assert_eq!(order(&mut nvme, 20), [0; 20]);
        let mut share = [0; 4];
        order(&mut nvme, 14).iter().for_each(|q| share[*q as usize] += 1);
        assert_eq!(share, [0, 8, 4, 2]);
    }

    #[test]
    fn turns_are_loaded_as_saved() {
        let weighted = Arbitration::Weighted { burst: 2, weights: [4, 2, 1], classes: vec![1, 1, 2, 3] };
        for arbitration in [Arbitration::RoundRobin { burst: 3 }, weighted] {
            for taken in 0..12 {
                let mut nvme = filled(4, 20, arbitration.clone());
                order(&mut nvme, taken);
                let mut bytes = Vec::new();
                nvme.save(&mut bytes);
                let mut copy = Nvme { classes: filled(4, 20, arbitration.clone()).classes, ..nvme.clone() };
                assert_eq!(copy.load(&mut bytes.as_slice()), Some(()));
                assert_eq!(order(&mut copy, 30), order(&mut nvme, 30));
            }
        }
    }

    #[test]
    fn the_controller_holds_no_more_than_its_limit() {
        let mut nvme = filled(2, 5, Arbitration::RoundRobin { burst: 1 });
        nvme.limit = 3;
        assert_eq!(order(&mut nvme, 10).len(), 3);
        nvme.done(0);
        assert_eq!(order(&mut nvme, 10).len(), 1);
    }
}
