//! Thread schedulers: which thread of a core runs next.

pub mod fifo;
pub mod notified;
pub mod priority;

use engine::Time;

/// Occasion of a scheduling decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The running job has ended, or nothing runs.
    Ended,
    /// The running job's page is in flash: it has joined the halted ones.
    Missed,
}

/// Halted job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halted {
    /// Time of the halt.
    pub since: Time,
    /// True once the core has been notified that the page has arrived.
    pub arrived: bool,
}

/// View of a core for its scheduler.
#[derive(Clone, Copy, Debug)]
pub struct ThreadView<'a> {
    /// Occasion of the decision.
    pub moment: Moment,
    /// Present time.
    pub now: Time,
    /// True if a new job and a free thread are available.
    pub new: bool,
    /// Halted jobs, in the order in which they were halted.
    pub halted: &'a [Halted],
    /// Measured response time of flash; `None` without a measurement: halted jobs are then notified, or wait for the
    /// first measurement.
    pub response: Option<Time>,
}

/// Decision of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Begin the next new job.
    New,
    /// Resume a halted job, by its position in the view.
    Resume(u32),
    /// Sleep until a job or a page arrives, or until the given time.
    Sleep(Option<Time>),
}

config::policies! {
    /// Thread that a core runs next.
    pub family ThreadScheduling: dyn ThreadScheduler, context () {
        /// New jobs first, but the oldest halted job once it has been halted for longer than flash takes to respond.
        ///
        /// AstriFlash, section IV-D: priority scheduling with ageing.
        default priority => priority::Priority::new,
        /// New jobs first, whatever waits; halted jobs are considered only when the running job is halted.
        ///
        /// AstriFlash-noPS, sections V-B and VI-B.
        fifo => fifo::Fifo::new,
        /// Halted job whose page arrived first, as the memory notifies the core; then new jobs.
        ///
        /// AstriFlash's queue pairs (section IV-D2), and threads of an operating system, which an interrupt wakes.
        notified => notified::Notified::new,
    }
}

/// Scheduler of a core's threads.
///
/// Contract: `New` only if the view has a new job, `Resume` only for one of the halted jobs. A scheduler never sleeps
/// while a new job is available; with a halted job and a measured response, it sleeps at most until that job is old
/// enough. Equal views give equal choices.
pub trait ThreadScheduler {
    /// Chooses the core's next action.
    fn choose(&mut self, view: &ThreadView<'_>) -> Choice;
}

impl ThreadView<'_> {
    /// Time at which the oldest halted job has been halted for as long as flash takes to respond.
    pub fn due(&self) -> Option<Time> {
        Some(self.halted.first()?.since + self.response?)
    }

    /// Returns whether that time has come.
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
