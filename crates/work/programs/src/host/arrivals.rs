//! When requests come: in an open loop, whatever becomes of those before, or in a closed one, each client after its answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use engine::{Rng, Time};

use super::options::{Options, Parameter, Range};

const HOUR: Time = Time::from_s(3_600);

/// The parameters of a service whose requests come `rate` a second.
pub(crate) const fn parameters(rate: &'static str) -> [Parameter; 6] {
    [
        Parameter {
            name: "arrivals",
            what: "open: requests come by a Poisson process at `rate`; closed: each of `clients` sends its next one `think` after its answer",
            default: "open",
            range: Range::Word(&["open", "closed"]),
            source: "httperf is open (Mosberger, Jin, SIGMETRICS 1998), ab and sysbench are closed",
        },
        Parameter {
            name: "rate",
            what: "requests a second (open)",
            default: rate,
            range: Range::Real(0.001, 1e7),
            source: "chosen: a fraction of what eight cores of 2 GHz can do",
        },
        Parameter {
            name: "clients",
            what: "clients (closed)",
            default: "32",
            range: Range::Count(1, 65_536),
            source: "chosen",
        },
        Parameter {
            name: "think",
            what: "time between an answer and the client's next request in the mean, exponential (closed)",
            default: "0s",
            range: Range::Span(Time::ZERO, HOUR),
            source: "ab and sysbench do not think",
        },
        Parameter {
            name: "threads",
            what: "workers; each serves one request at a time",
            default: "64",
            range: Range::Count(1, 4_096),
            source: "chosen: more than are ever busy at half load, fewer than Apache's MaxRequestWorkers of 256",
        },
        Parameter {
            name: "requests",
            what: "requests after which the program ends; 0: it goes on",
            default: "0",
            range: Range::Count(0, u64::MAX >> 1),
            source: "the run ends first",
        },
    ]
}

/// A request that will come or has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// When the client sends it.
    pub(crate) at: Time,
    /// The client.
    client: u32,
}

enum Law {
    /// Mean time between requests in picoseconds, and when the next one comes.
    Open { gap: f64, next: Time },
    /// Mean time to think in picoseconds, and the clients that no worker serves, by when they send.
    Closed { think: f64, clients: BinaryHeap<Reverse<(Time, u32)>> },
}

/// Hands requests to workers, first come first served.
///
/// A worker that is free claims the next request and sleeps until it comes. So claims are made in the order of arrivals, by whoever is free
/// first, and nobody waits while another sleeps: a claim is never for later than what is still unclaimed.
pub(crate) struct Arrivals {
    law: Law,
    rng: Rng,
    /// Claims that may still be made.
    left: u64,
}

fn exponential(mean: f64, rng: &mut Rng) -> Time {
    Time::from_ps((-libm::log(1.0 - rng.unit()) * mean) as u64)
}

impl Arrivals {
    /// As the parameters of [`parameters`] say, and how many workers can be of use.
    pub(crate) fn new(options: &Options, mut rng: Rng) -> (Arrivals, u32) {
        let threads = options.whole("threads") as u32;
        let left = match options.whole("requests") {
            0 => u64::MAX,
            requests => requests,
        };
        if options.word("arrivals", &[true, false]) {
            let gap = 1e12 / options.real("rate");
            let next = exponential(gap, &mut rng);
            return (Arrivals { law: Law::Open { gap, next }, rng, left }, threads);
        }
        let think = options.span("think").ps() as f64;
        let n = options.whole("clients") as u32;
        let clients = (0..n).map(|client| Reverse((exponential(think, &mut rng), client))).collect();
        (Arrivals { law: Law::Closed { think, clients }, rng, left }, threads.min(n))
    }

    /// The next request; none if there are no more.
    pub(crate) fn claim(&mut self) -> Option<Arrival> {
        self.left = self.left.checked_sub(1)?;
        Some(match &mut self.law {
            Law::Open { gap, next } => {
                let at = *next;
                *next = at + exponential(*gap, &mut self.rng);
                Arrival { at, client: 0 }
            }
            Law::Closed { clients, .. } => {
                let first = clients.pop().expect("there are no more workers than clients");
                Arrival { at: first.0.0, client: first.0.1 }
            }
        })
    }

    /// The client of a request has its answer.
    pub(crate) fn answered(&mut self, arrival: Arrival, now: Time) {
        if let Law::Closed { think, clients } = &mut self.law {
            clients.push(Reverse((now + exponential(*think, &mut self.rng), arrival.client)));
        }
    }
}
