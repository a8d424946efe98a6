//! How the requests of a job get to a file through the kernel of a host.

use config::Diagnostic;
use proto::file::{Advice, Way};

use super::spec::{Engine, Hint, JobSpec};

impl JobSpec {
    /// Whether its requests go to a file of a host: buffered ones always, direct ones if its kernel is simulated.
    pub(super) fn takes_a_file(&self, direct: bool) -> bool {
        match self.buffered {
            // It has no page cache, and no kernel between.
            _ if self.engine == Some(Engine::Passthrough) => false,
            _ if self.engine == Some(Engine::Mapped) => true,
            Some(true) => true,
            Some(false) => direct,
            None => false,
        }
    }

    /// Whether its requests pass through the page cache of a host.
    pub(super) fn is_cached(&self) -> bool {
        self.buffered == Some(true) || self.engine == Some(Engine::Mapped)
    }

    /// What the kernel is told of its reads (`fadvise_hint`): what `rw` says, unless the job says something else.
    pub(super) fn advice(&self) -> Advice {
        let by_pattern = if self.rw.random { Advice::Random } else { Advice::Sequential };
        match self.advice {
            None | Some(Hint::ByPattern) => by_pattern,
            Some(Hint::Nothing) => Advice::Normal,
            Some(Hint::Sequential) => Advice::Sequential,
            Some(Hint::Random) => Advice::Random,
        }
    }

    /// How they do. Without an `ioengine`, as with `libaio`.
    ///
    /// # Errors
    /// An engine that the simulated kernel does not have, or that refuses the job.
    pub(super) fn way(&self) -> Result<Way, Diagnostic> {
        if self.buffered == Some(true) && self.engine != Some(Engine::Mapped) {
            return Ok(Way::Buffered);
        }
        match self.engine {
            Some(Engine::Mapped) => Ok(Way::Mapped),
            Some(Engine::Blocking) => Ok(Way::Direct),
            None | Some(Engine::Libaio) => Ok(Way::Aio),
            Some(Engine::IoUring) if !self.hipri => Ok(Way::Uring),
            Some(Engine::IoUring) => {
                if self.fsync > 0 || self.fdatasync > 0 || self.end_fsync {
                    // `io_fsync_prep`.
                    let what = format!("job `{}`: a ring with hipri takes no fsync", self.name);
                    return Err(Diagnostic::new(what)
                        .at(self.place_of("hipri"))
                        .help("leave out hipri, or make writes durable with sync=dsync"));
                }
                Ok(Way::Polled)
            }
            Some(Engine::OtherQueued | Engine::OtherQueuedFlush | Engine::Passthrough) => {
                let what = format!("job `{}`: the kernel of the host does not have this ioengine", self.name);
                Err(Diagnostic::new(what).at(self.place_of("ioengine")).help(
                    "libaio, io_uring and the blocking engines go through it; without `direct`, any goes straight to the drive",
                ))
            }
        }
    }

    /// That `ioscheduler` does nothing for requests that pass no block layer.
    pub(super) fn unscheduled(&self) -> Option<String> {
        let why = "requests go straight to the drive, past the block layer of a host; direct=0 goes through it, and direct=1 on a host with a \
                   kernel (`host.linux`)";
        self.scheduler.map(|_| format!("{}: `ioscheduler` changes nothing here: {why}", self.name))
    }

    /// Why `hipri` does not do what is likely meant.
    pub(super) fn polling(&self, poll_queues: u16) -> Option<String> {
        let why = match (self.buffered, self.engine) {
            (Some(true), _) | (_, Some(Engine::Mapped)) => {
                "requests through the page cache are not polled, as in fio"
            }
            (None, _) => "without direct=1, requests go straight to the drive",
            (Some(false), Some(Engine::IoUring)) if poll_queues > 0 => return None,
            (Some(false), Some(Engine::IoUring)) => {
                "the drive has no queue without interrupts (host.linux.driver.poll_queues): the job looks for completions on its core, and \
                 interrupts bring them"
            }
            (Some(false), _) => {
                "Linux polls for io_uring alone: not for a request that its thread waits for (since 5.19), nor for libaio"
            }
        };
        Some(format!("job `{}`: hipri: {why}", self.name))
    }
}
