//! Which requests are kept.

use engine::{Rng, Time};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Which requests are kept of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keep {
    /// All.
    #[default]
    All,
    /// So many, each with the same chance.
    Sample(usize),
    /// The slowest; of equals those that completed first.
    Slowest(usize),
    /// Those that completed in a span of time, its end excluded.
    Window(Time, Time),
}

/// A row that may have to give way, with its place in the order of completion.
#[derive(Clone, Copy, Debug)]
struct Held<T> {
    rank: u64,
    order: Reverse<u64>,
    what: T,
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Held<T>) -> Ordering {
        (self.rank, self.order).cmp(&(other.rank, other.order))
    }
}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Held<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Held<T>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Held<T> {}

/// Keeps what a [`Keep`] says.
pub struct Keeper<T> {
    keep: Keep,
    rng: Rng,
    seen: u64,
    sampled: Vec<(u64, T)>,
    slowest: BinaryHeap<Reverse<Held<T>>>,
}

impl<T> Keeper<T> {
    /// Nothing yet. A sample is drawn from a stream of its own of the run's seed: it changes no result.
    pub fn new(keep: Keep, seed: u64) -> Keeper<T> {
        let rng = Rng::stream(seed, "requests");
        Keeper { keep, rng, seen: 0, sampled: Vec::new(), slowest: BinaryHeap::new() }
    }

    /// A request has completed. It comes back if it is known now that it is kept; else the keeper holds it, or lets it go.
    pub fn offer(&mut self, completed: Time, latency: Time, what: T) -> Option<T> {
        let order = self.seen;
        self.seen += 1;
        match self.keep {
            Keep::All => return Some(what),
            Keep::Window(from, to) => return (completed >= from && completed < to).then_some(what),
            // Algorithm R (Vitter 1985).
            Keep::Sample(size) if self.sampled.len() < size => self.sampled.push((order, what)),
            Keep::Sample(size) => {
                let at = self.rng.below(self.seen);
                if at < size as u64 {
                    self.sampled[at as usize] = (order, what);
                }
            }
            Keep::Slowest(size) => {
                self.slowest.push(Reverse(Held { rank: latency.ps(), order: Reverse(order), what }));
                if self.slowest.len() > size {
                    self.slowest.pop();
                }
            }
        }
        None
    }

    /// What was held, in the order of completion.
    pub fn held(&mut self) -> Vec<T> {
        let mut all = std::mem::take(&mut self.sampled);
        all.extend(
            std::mem::take(&mut self.slowest).into_iter().map(|Reverse(held)| (held.order.0, held.what)),
        );
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, what)| what).collect()
    }

    /// Requests that were offered.
    pub const fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::{Keep, Keeper};
    use engine::Time;

    fn kept(keep: Keep, latencies: &[u64]) -> Vec<u64> {
        let mut keeper = Keeper::new(keep, 1);
        let mut all = Vec::new();
        for (id, latency) in (0u64..).zip(latencies) {
            all.extend(keeper.offer(Time::from_ns(id), Time::from_ns(*latency), id));
        }
        all.extend(keeper.held());
        all
    }

    #[test]
    fn the_slowest_are_kept_in_the_order_of_completion() {
        assert_eq!(kept(Keep::Slowest(3), &[5, 1, 9, 5, 2, 5, 8]), [0, 2, 6]);
        assert_eq!(kept(Keep::Slowest(3), &[1, 2]), [0, 1]);
    }

    #[test]
    fn a_window_excludes_its_end() {
        assert_eq!(kept(Keep::Window(Time::from_ns(2), Time::from_ns(4)), &[7; 9]), [2, 3]);
    }

    #[test]
    fn every_request_has_the_same_chance_to_be_in_a_sample() {
        // 400 draws of 10 in 40: each is in a quarter of them. Five standard deviations of a binomial count are 43.
        let mut counts = [0u32; 40];
        for seed in 0..400 {
            let mut keeper = Keeper::new(Keep::Sample(10), seed);
            (0..40usize).for_each(|id| assert_eq!(keeper.offer(Time::ZERO, Time::ZERO, id), None));
            let held = keeper.held();
            assert!(held.len() == 10 && held.is_sorted());
            held.into_iter().for_each(|id| counts[id] += 1);
        }
        assert!(counts.iter().all(|count| (57..=143).contains(count)), "{counts:?}");
    }
}
