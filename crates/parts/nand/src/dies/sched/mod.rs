//! Die scheduling: which operation a free die takes next.

pub mod in_order;
pub mod oldest;
pub mod priority;
pub mod read_first;

use super::op::Class;
use engine::Time;

/// View of a scheduler: the queues of one die.
pub struct DieView<'a> {
    /// Current time.
    pub now: Time,
    /// Classes with waiting operations, as a bit set over [`Class::ALL`].
    pub waiting: u16,
    pub(crate) oldest: &'a [u64; Class::COUNT],
    pub(crate) since: &'a dyn Fn(Class) -> Time,
}

impl DieView<'_> {
    /// Iterates over the classes with waiting operations, most urgent first.
    #[inline]
    pub fn classes(&self) -> impl Iterator<Item = Class> + use<> {
        let mut bits = self.waiting;
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(Class::ALL[bit as usize])
        })
    }
    /// Returns the position of a waiting class's oldest operation in the order of arrival at the device.
    #[inline]
    pub fn oldest(&self, class: Class) -> u64 {
        self.oldest[class as usize]
    }
    /// Returns the queueing time of the oldest operation of a waiting class.
    pub fn since(&self, class: Class) -> Time {
        (self.since)(class)
    }
    /// Returns the waiting class whose oldest operation came first.
    #[inline]
    pub fn first_come(&self) -> Option<Class> {
        self.classes().min_by_key(|c| self.oldest(*c))
    }
}

config::policies! {
    /// Which waiting operation a free die takes next.
    pub family Scheduling: dyn Scheduler, context () {
        /// Each die takes its oldest operation; dies overtake each other freely.
        ///
        /// Out of order on the channel, in order on the die.
        default oldest => oldest::Oldest::new,
        /// Operations start in order of arrival on their channel.
        ///
        /// An operation whose die is busy blocks those behind it (head-of-line blocking).
        in_order => in_order::InOrder::new,
        /// Strict priority between classes; lower classes may starve.
        ///
        /// Mapping reads, then host reads by the command's priority, host programs, mapping programs, garbage
        /// collection reads and programs, erases.
        priority => priority::Priority::new,
        /// Reads with a waiter go first, until a different operation has waited for too long.
        read_first(read_first::Params) => read_first::ReadFirst::new,
    }
}

/// Chooses among the waiting operations of one free die.
///
/// Contract: a pure decision; the answer is one of the view's classes, never empty; the cost does not depend on the
/// number of dies. Inside a class, operations of one plane leave in order of arrival. After `load`, the policy decides
/// as it would have at `save`.
pub trait Scheduler {
    /// Returns the class whose oldest operation goes next.
    fn pick(&mut self, view: &DieView<'_>) -> Option<Class>;
    /// Returns whether operations of a channel must start in order of arrival, so that one whose die is busy blocks
    /// those behind it.
    fn holds_line(&self) -> bool {
        false
    }
    /// Returns whether an operation of the first class goes before one of the second that has waited for longer.
    fn prefers(&self, _class: Class, _other: Class) -> bool {
        false
    }
    /// Appends the policy's own state, without parameters.
    fn save(&self, _out: &mut Vec<u8>) {}
    /// Restores the state that a policy with the same parameters saved; `None` if it is truncated or malformed.
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<Scheduling>().expect("the list is whole");
    }

    #[test]
    fn what_is_loaded_decides_like_what_was_saved() {
        let mut rng = engine::Rng::stream(1, "test");
        for family in Scheduling::all_defaults() {
            let mut policy = family.build(&());
            for _ in 0..200 {
                let waiting = 1 + rng.below((1 << Class::COUNT) - 1) as u16;
                let oldest = std::array::from_fn(|_| rng.below(1000));
                let view = DieView {
                    now: Time::from_ms(10),
                    waiting,
                    oldest: &oldest,
                    since: &|class| Time::from_us(10 * oldest[class as usize]),
                };
                let mut bytes = Vec::new();
                policy.save(&mut bytes);
                let mut copy = family.build(&());
                assert_eq!(copy.load(&mut bytes.as_slice()), Some(()), "{}", family.name());
                let class = policy.pick(&view);
                assert_eq!(copy.pick(&view), class, "{}", family.name());
                assert!(class.is_some_and(|c| waiting >> c as u8 & 1 == 1), "{}", family.name());
                policy = copy;
            }
        }
    }
}
