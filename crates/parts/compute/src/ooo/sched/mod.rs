//! Which thread of a core runs next.

pub mod fifo;
pub mod notified;
pub mod priority;

use engine::Time;

/// Why a core asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The running job has ended, or nothing runs.
    Ended,
    /// The running job's page is in flash: it has joined the halted ones.
    Missed,
}

/// A halted job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halted {
    /// When it was halted.
    pub since: Time,
    /// Whether its core has been told that its page has come.
    pub arrived: bool,
}

/// What a scheduler may look at.
#[derive(Clone, Copy, Debug)]
pub struct ThreadView<'a> {
    /// Why it is asked.
    pub moment: Moment,
    /// The present.
    pub now: Time,
    /// Whether a new job is there and a thread to run it.
    pub new: bool,
    /// The halted jobs, in the order in which they were halted.
    pub halted: &'a [Halted],
    /// How long flash takes to answer, as measured; none if nothing has been measured: halted jobs are told about then, or
    /// wait for the first measurement.
    pub response: Option<Time>,
}

/// What a core does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Begins the next new job.
    New,
    /// Goes on with a halted job, by its place in the view.
    Resume(u32),
    /// Sleeps until a job or a page comes, or until then.
    Sleep(Option<Time>),
}

config::policies! {
    /// Which thread of a core runs next.
    pub family ThreadScheduling: dyn ThreadScheduler, context () {
        /// New jobs first, but the oldest halted job as soon as it has been halted for longer than flash takes to answer.
        ///
        /// AstriFlash, section IV-D: priority scheduling with ageing.
        default priority => priority::Priority::new,
        /// New jobs, whatever waits; halted ones are looked at only when the running job is halted.
        ///
        /// AstriFlash-noPS, sections V-B and VI-B.
        fifo => fifo::Fifo::new,
        /// The halted job whose page has come first, as the memory tells the core; then new jobs.
        ///
        /// AstriFlash's queue pairs (section IV-D2), and threads of an operating system, which an interrupt wakes.
        notified => notified::Notified::new,
    }
}

/// Chooses what a core does next.
///
/// Contract: `New` only if the view has a new job, `Resume` only of one of the halted. It never sleeps while there is a new
/// job, and with a halted job and a measured response only until that job is old enough.
/// The same view gives the same choice.
pub trait ThreadScheduler {
    /// What the core does next.
    fn choose(&mut self, view: &ThreadView<'_>) -> Choice;
}

impl ThreadView<'_> {
    /// When the oldest halted job has been halted for as long as flash takes to answer.
    pub fn due(&self) -> Option<Time> {
        Some(self.halted.first()?.since + self.response?)
    }

    /// Whether that is now or has been.
    pub fn is_due(&self) -> bool {
        self.due().is_some_and(|due| due <= self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<ThreadScheduling>().expect("the list is whole");
    }

    fn view(moment: Moment, new: bool, halted: &[Halted]) -> ThreadView<'_> {
        ThreadView { moment, now: Time::from_us(100), new, halted, response: Some(Time::from_us(50)) }
    }

    #[test]
    fn every_scheduler_keeps_its_contract() {
        let mut rng = engine::Rng::stream(5, "threads");
        for family in ThreadScheduling::all_defaults() {
            let mut scheduler = family.build(&());
            for _ in 0..2000 {
                let mut halted: Vec<Halted> = (0..rng.below(4))
                    .map(|_| Halted { since: Time::from_us(rng.below(100)), arrived: rng.below(2) == 0 })
                    .collect();
                halted.sort_by_key(|job| job.since);
                let moment = if rng.below(2) == 0 { Moment::Ended } else { Moment::Missed };
                let view = view(moment, rng.below(2) == 0, &halted);
                let choice = scheduler.choose(&view);
                match choice {
                    Choice::New => assert!(view.new),
                    Choice::Resume(n) => assert!((n as usize) < halted.len()),
                    Choice::Sleep(until) => {
                        assert!(!view.new && !view.is_due());
                        assert_eq!(until.is_some(), !halted.is_empty());
                    }
                }
                assert_eq!(choice, scheduler.choose(&view));
            }
        }
    }

    /// Section IV-D2: the head of the pending queue is checked whenever a job is picked. VI-B: without priorities, only when a
    /// miss is encountered.
    #[test]
    fn the_paper_s_schedulers_differ_when_a_job_has_ended() {
        let old = [Halted { since: Time::from_us(40), arrived: false }];
        let young = [Halted { since: Time::from_us(60), arrived: true }];
        let choose =
            |family: ThreadScheduling, moment, halted| family.build(&()).choose(&view(moment, true, halted));
        for moment in [Moment::Ended, Moment::Missed] {
            assert_eq!(choose(ThreadScheduling::priority, moment, &old), Choice::Resume(0));
            assert_eq!(choose(ThreadScheduling::priority, moment, &young), Choice::New);
            assert_eq!(choose(ThreadScheduling::notified, moment, &young), Choice::Resume(0));
        }
        assert_eq!(choose(ThreadScheduling::fifo, Moment::Ended, &old), Choice::New);
        assert_eq!(choose(ThreadScheduling::fifo, Moment::Missed, &old), Choice::Resume(0));
    }
}
