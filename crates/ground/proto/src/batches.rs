//! Batches of a queue: how many requests a thread submits at once, and how many completions it takes.

/// The batches in which the thread of a queue works, as fio's `iodepth_batch_submit`, `iodepth_batch_complete_min`, `iodepth_batch_complete_max`
/// and `iodepth_low` say them.
///
/// The thread submits until its queue is full. Then it takes completions until no more than `low` requests are outstanding, and
/// submits again (`do_io` and `wait_for_completions` of fio's `backend.c`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batches {
    /// Requests outstanding at most; with as many the queue is full.
    pub depth: u32,
    /// Requests of a submission; fewer if the thread has no more.
    pub submit: u32,
    /// Completions that the thread of a full queue waits for.
    pub complete_min: u32,
    /// Completions that it takes at once at most, if no more are waited for.
    pub complete_max: u32,
    /// Requests outstanding at which a queue that was full is filled again.
    pub low: u32,
}

impl Batches {
    /// One request at a time, as fio does by itself, of a queue without a bound.
    pub const ONE: Batches =
        Batches { depth: u32::MAX, submit: 1, complete_min: 1, complete_max: 1, low: u32::MAX };

    /// Completions that the thread takes now, of `ended` that have come; `outstanding` requests have not been taken, those that have ended
    /// among them. If the queue is not full, the thread has nothing to submit yet and takes each completion as it comes (`io_u_quiesce`).
    #[inline]
    pub fn takes(&self, ended: u32, outstanding: u32, full: bool) -> u32 {
        let least = if full { self.complete_min.min(outstanding).max(1) } else { 1 };
        if ended < least { 0 } else { ended.min(self.complete_max.max(least)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fio's documentation of `iodepth_batch_complete_min` and `iodepth_batch_complete_max`, and `td_io_getevents`.
    #[test]
    fn a_full_queue_waits_for_the_least_and_takes_the_most() {
        let batches = |complete_min, complete_max| Batches { complete_min, complete_max, ..Batches::ONE };
        for (min, max, ended, outstanding, taken) in [
            (1, 1, 0, 32, 0),
            (1, 1, 5, 32, 1),
            (8, 8, 7, 32, 0),
            (8, 8, 9, 32, 8),
            (8, 16, 20, 32, 16),
            // No more than the minimum is asked for where the maximum is below it.
            (8, 4, 8, 32, 8),
            // Fewer are outstanding than are to be waited for.
            (8, 8, 3, 3, 3),
            (0, 32, 0, 32, 0),
            (0, 32, 2, 32, 2),
        ] {
            assert_eq!(batches(min, max).takes(ended, outstanding, true), taken, "{min} {max} {ended}");
        }
        assert_eq!(batches(8, 8).takes(3, 20, false), 3);
        assert_eq!(Batches::ONE.takes(3, 20, false), 1);
    }
}
