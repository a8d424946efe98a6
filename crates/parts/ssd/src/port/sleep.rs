//! A link that sleeps while no command is outstanding.
//!
//! AHCI 1.3.1, section 8.3.1.3 (aggressive link power management): the adapter asks for Partial or Slumber when no command is
//! outstanding. PCI Express leaves the moment of entering L1 to the device. Frames that cross while commands are outstanding find the link awake.

use config::SleepSpec;
use engine::{Snapshot, Time};

/// Whether the link sleeps, and until when it wakes.
#[derive(Clone, Debug)]
pub struct LinkSleep {
    spec: SleepSpec,
    /// Commands between their doorbell and their completion.
    outstanding: u32,
    /// When the host saw the last completion.
    idle_since: Time,
    /// When the link is awake.
    awake: Time,
}

impl LinkSleep {
    /// A link that is idle from the beginning.
    pub fn new(spec: SleepSpec) -> LinkSleep {
        LinkSleep { spec, outstanding: 0, idle_since: Time::ZERO, awake: Time::ZERO }
    }

    /// A command enters; what it waits until the link is awake.
    pub(super) fn enters(&mut self, now: Time) -> Time {
        if self.outstanding == 0 {
            self.awake = now + self.spec.wait(self.idle_since, now);
        }
        self.outstanding += 1;
        self.awake.since(now)
    }

    /// The host sees a completion at this time.
    pub(super) fn completes(&mut self, seen: Time) {
        self.outstanding -= 1;
        self.idle_since = self.idle_since.max(seen);
    }

    /// Appends since when it is idle; nothing is outstanding.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let LinkSleep { spec: _, outstanding: _, idle_since, awake: _ } = self;
        idle_since.save(out);
    }

    /// Replaces it by what a link saved; `None` if that is cut short.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.idle_since = Time::load(input)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::units::Duration;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn link() -> LinkSleep {
        LinkSleep::new(SleepSpec { after: Duration::new(us(5)), exit: Duration::new(us(40)) })
    }

    /// The first command wakes the link, the second waits for what is left of that, and none waits while another is under way.
    #[test]
    fn one_command_wakes_the_link_for_those_that_follow() {
        let mut link = link();
        assert_eq!([100, 110, 200].map(|now| link.enters(us(now))), [us(40), us(30), us(0)]);
        for seen in [300, 310, 320] {
            link.completes(us(seen));
        }
        assert_eq!(link.enters(us(324)), us(0));
        link.completes(us(400));
        assert_eq!(link.enters(us(405)), us(40));
    }

    #[test]
    fn an_idle_link_goes_on_from_what_it_saved() {
        let (mut before, mut after, mut saved) = (link(), link(), Vec::new());
        before.enters(us(10));
        before.completes(us(100));
        before.save(&mut saved);
        assert_eq!(after.load(&mut saved.as_slice()), Some(()));
        assert_eq!(after.enters(us(104)), us(0));
    }
}
