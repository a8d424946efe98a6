//! Eviction: which clean line makes room, and which dirty line is written back next.

pub mod cflru;
pub mod fifo;
pub mod lru;

use crate::buffer::order::Order;
use engine::Snapshot;

config::policies! {
    /// Which clean line of the buffer makes room, and which dirty line is flushed next.
    pub family EvictionPolicy: dyn Eviction, context () {
        /// Least recently used first.
        default lru => |_: &()| lru::Lru::new(),
        /// First in, first out: use does not matter.
        fifo => |_: &()| fifo::Fifo::new(),
        /// Clean lines first, within a window of the least recently used end.
        ///
        /// CFLRU (Park et al., CASES 2006): evicting a clean line costs no program.
        cflru(cflru::Params) => |p: &cflru::Params, _: &()| cflru::Cflru::new(p.window.max(1)),
    }
}

/// Content of a buffer line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Data that is also on flash.
    Clean,
    /// Data that is not on flash, with no flush in flight.
    Dirty,
    /// Data with a flush in flight, whether or not the line has been written again since.
    Flushing,
}

/// Chooses the line to evict and the line to flush.
///
/// A policy maintains two orders: one of the clean lines, for eviction, and one of the dirty lines, for flushing. Lines
/// are numbers below the buffer's capacity; the buffer reports every change.
///
/// Contract:
/// * [`Eviction::evict`] and [`Eviction::flush`] only choose; the line changes when the buffer reports it. Asked again
///   without a report in between, they answer the same.
/// * `evict` answers a line whose last reported state is clean. It may decline, although some line is clean, if its
///   order puts a dirty or flushing line before every clean one: the request for room then waits for a flush. It must
///   not decline when every line is clean.
/// * `flush` answers a line whose last reported state is dirty, if any exists.
/// * No call costs more than O(log lines), amortised; none allocates once every line has been used.
/// * After `load`, the policy decides as it would have at `save`.
pub trait Eviction {
    /// Registers a line taken for a unit: its first use counts as a touch.
    fn enter(&mut self, line: u32, state: LineState);
    /// Registers a further host read or write of a line.
    fn touch(&mut self, line: u32);
    /// Registers a changed state of a line.
    fn turn(&mut self, line: u32, state: LineState);
    /// Registers a vacated line.
    fn leave(&mut self, line: u32);
    /// Returns the clean line to evict.
    fn evict(&mut self) -> Option<u32>;
    /// Returns the dirty line to flush next.
    fn flush(&mut self) -> Option<u32>;
    /// Appends the policy's state, without parameters.
    fn save(&self, out: &mut Vec<u8>);
    /// Restores the state that a policy with the same parameters saved; `None`, and no change, if it is truncated or
    /// malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

/// Common state of the age-ordered policies: a stamp for each line, and the clean and the dirty lines by stamp.
///
/// Flushes complete in any order, so a line that becomes clean belongs anywhere among the clean ones: plain lists would
/// not keep the exact order.
#[derive(Clone, Debug, Default)]
struct Aged {
    clock: u64,
    stamps: Vec<u64>,
    clean: Order,
    dirty: Order,
}

impl Aged {
    fn enter(&mut self, line: u32, state: LineState) {
        if self.stamps.len() <= line as usize {
            self.stamps.resize(line as usize + 1, 0);
        }
        self.clock += 1;
        self.stamps[line as usize] = self.clock;
        self.turn(line, state);
    }

    /// Makes a line the youngest.
    #[inline]
    fn renew(&mut self, line: u32) {
        self.clock += 1;
        self.stamps[line as usize] = self.clock;
        for order in [&mut self.clean, &mut self.dirty] {
            if order.remove(line) {
                order.insert(line, self.clock);
            }
        }
    }

    fn turn(&mut self, line: u32, state: LineState) {
        self.leave(line);
        match state {
            LineState::Clean => self.clean.insert(line, self.stamps[line as usize]),
            LineState::Dirty => self.dirty.insert(line, self.stamps[line as usize]),
            LineState::Flushing => {}
        }
    }

    fn leave(&mut self, line: u32) {
        // A flushing line is in neither.
        let _ = self.clean.remove(line) || self.dirty.remove(line);
    }

    fn oldest_clean(&self) -> Option<u32> {
        self.clean.first().map(|(_, line)| line)
    }

    fn oldest_dirty(&self) -> Option<u32> {
        self.dirty.first().map(|(_, line)| line)
    }

    /// Returns the number of lines ever used.
    fn lines(&self) -> usize {
        self.stamps.len()
    }
}

impl Snapshot for Aged {
    fn save(&self, out: &mut Vec<u8>) {
        let Aged { clock, stamps, clean, dirty } = self;
        clock.save(out);
        stamps.save(out);
        clean.sorted().save(out);
        dirty.sorted().save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        let clock = u64::load(input)?;
        let stamps = Vec::<u64>::load(input)?;
        let clean = Vec::<(u64, u32)>::load(input)?;
        let dirty = Vec::<(u64, u32)>::load(input)?;
        let sound =
            |(key, line): &(u64, u32)| stamps.get(*line as usize).is_some_and(|s| key == s && *s <= clock);
        if !clean.iter().chain(&dirty).all(sound) {
            return None;
        }
        let (clean, dirty) =
            (Order::from_sorted(&clean, stamps.len())?, Order::from_sorted(&dirty, stamps.len())?);
        Some(Aged { clock, stamps, clean, dirty })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Rng;

    const LINES: u32 = 12;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<EvictionPolicy>().expect("the list is whole");
    }

    /// Reports a random change of a line, as a buffer may.
    fn report(policy: &mut dyn Eviction, states: &mut [Option<LineState>], rng: &mut Rng) {
        let line = rng.below(LINES.into()) as u32;
        let state = &mut states[line as usize];
        let next = match (*state, rng.below(4)) {
            (None, 0..=1) => LineState::Clean,
            (None, _) | (Some(LineState::Clean), 0) => LineState::Dirty,
            (Some(LineState::Clean), 1) => {
                *state = None;
                return policy.leave(line);
            }
            (Some(LineState::Dirty), 0..=1) => LineState::Flushing,
            (Some(LineState::Flushing), 0..=1) => LineState::Clean,
            (Some(_), _) => return policy.touch(line),
        };
        match state.replace(next) {
            None => policy.enter(line, next),
            Some(_) => policy.turn(line, next),
        }
    }

    #[test]
    fn every_policy_keeps_its_contract() {
        for family in EvictionPolicy::all_defaults() {
            let name = family.name();
            let mut rng = Rng::stream(1, "test");
            let mut policy = family.build(&());
            let mut states = [None; LINES as usize];
            for _ in 0..5_000 {
                report(policy.as_mut(), &mut states, &mut rng);
                let chosen = (policy.evict(), policy.flush());
                assert_eq!((policy.evict(), policy.flush()), chosen, "{name}: asking changes nothing");
                let is =
                    |line: Option<u32>, state| line.is_none_or(|line| states[line as usize] == Some(state));
                assert!(
                    is(chosen.0, LineState::Clean) && is(chosen.1, LineState::Dirty),
                    "{name}: {chosen:?}"
                );
                let held = || states.iter().flatten();
                assert_eq!(chosen.1.is_some(), held().any(|state| *state == LineState::Dirty), "{name}");
                let all_clean = held().count() > 0 && held().all(|state| *state == LineState::Clean);
                assert!(chosen.0.is_some() || !all_clean, "{name}: declines though every line is clean");
                let mut bytes = Vec::new();
                policy.save(&mut bytes);
                let mut copy = family.build(&());
                assert_eq!(copy.load(&mut bytes.as_slice()), Some(()), "{name}");
                assert_eq!(
                    (copy.evict(), copy.flush()),
                    chosen,
                    "{name}: the loaded policy decides like the saved one"
                );
                policy = copy;
            }
        }
    }
}
