//! Demand of a service: arrival times of requests, their objects, and the sizes of objects.
//!
//! Requests arrive in an open loop, independent of earlier ones, or in a closed loop, each client after its answer.

use super::{Options, Parameter, Range};
use engine::{Rng, Time};
use requests::synth::Zipf;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Number of files of one class in a directory.
const FILES: u64 = 9;
/// Number of files of a directory.
const DIRECTORY: u64 = 4 * FILES;
/// Percent of the requests by class.
const CLASSES: [u64; 4] = [35, 50, 14, 1];
/// Files of a class from the most to the least popular; the one at position `k`, counted from one, gets a share of 1
/// / k. This gives SPECweb99's percentages 3.9, 5.9, 8.8, 17.7, 35.3, 11.8, 7.1, 5.0, 4.4.
const BY_POPULARITY: [u64; FILES as usize] = [4, 3, 5, 2, 6, 1, 7, 8, 0];
/// Least common multiple of the positions, so that the shares are whole.
const WHOLE: u64 = 2_520;

/// Set of objects, by number.
pub(crate) trait Set {
    /// Returns the number of objects.
    fn len(&self) -> u64;
    /// Returns the bytes of an object.
    fn bytes(&self, object: u64) -> u64;
    /// Draws a requested object.
    fn draw(&self, rng: &mut Rng) -> u64;
    /// Returns the name of an object.
    fn name(&self, object: u64) -> String;
}

/// Static files of SPECweb99: directories of 36 files, nine of each class, of about 5 MB.
pub(crate) struct SpecWeb {
    directories: u64,
    zipf: Zipf,
}

impl SpecWeb {
    /// Returns the bytes of a directory.
    pub(crate) fn directory_bytes() -> u64 {
        (0..DIRECTORY).map(SpecWeb::bytes_of).sum()
    }

    /// Creates as many directories as fit, at least one, with Zipf's law over them.
    pub(crate) fn new(bytes: u64, theta: f64) -> SpecWeb {
        let directories = (bytes / SpecWeb::directory_bytes()).max(1);
        SpecWeb { directories, zipf: Zipf::new(directories, theta) }
    }

    /// Returns the bytes of a file: class `c` has files of 1 to 9 times 102.4, 1,024, 10,240 and 102,400 bytes.
    fn bytes_of(file: u64) -> u64 {
        let (class, n) = (file % DIRECTORY / FILES, file % FILES + 1);
        (n * 1_024 * 10_u64.pow(class as u32) + 5) / 10
    }

    fn class(rng: &mut Rng) -> u64 {
        let mut percent = rng.below(100);
        for (class, share) in (0..).zip(CLASSES) {
            if percent < share {
                return class;
            }
            percent -= share;
        }
        unreachable!("the shares are 100 together")
    }

    fn file(rng: &mut Rng) -> u64 {
        let all: u64 = (1..=FILES).map(|place| WHOLE / place).sum();
        let mut part = rng.below(all);
        for (place, file) in (1..).zip(BY_POPULARITY) {
            if part < WHOLE / place {
                return file;
            }
            part -= WHOLE / place;
        }
        unreachable!("the parts are all of them")
    }
}

impl Set for SpecWeb {
    fn len(&self) -> u64 {
        self.directories * DIRECTORY
    }

    fn bytes(&self, object: u64) -> u64 {
        SpecWeb::bytes_of(object)
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let directory = self.zipf.rank(|| rng.unit());
        directory * DIRECTORY + SpecWeb::class(rng) * FILES + SpecWeb::file(rng)
    }

    fn name(&self, object: u64) -> String {
        let (directory, file) = (object / DIRECTORY, object % DIRECTORY);
        format!("dir{directory:05}/class{}_{}", file / FILES, file % FILES)
    }
}

/// Images, uniform in the logarithm of their size.
pub(crate) struct Images {
    count: u64,
    least: f64,
    /// Logarithm of the largest size over the smallest.
    octaves: f64,
    salt: u64,
    zipf: Option<Zipf>,
}

impl Images {
    /// Creates as many images as have `bytes` on average in total, at least one; popular by Zipf's law, or uniformly
    /// if `theta` is zero.
    pub(crate) fn new(bytes: u64, (least, most): (u64, u64), theta: f64, salt: u64) -> Images {
        let (low, high) = (least as f64, most as f64);
        let octaves = libm::log(high / low);
        let mean = if octaves > 0.0 { (high - low) / octaves } else { low };
        let count = ((bytes as f64 / mean) as u64).max(1);
        let zipf = (theta > 0.0).then(|| Zipf::new(count, theta));
        Images { count, least: low, octaves, salt, zipf }
    }
}

impl Set for Images {
    fn len(&self) -> u64 {
        self.count
    }

    fn bytes(&self, object: u64) -> u64 {
        let unit = (engine::mix(self.salt ^ object) >> 11) as f64 / (1_u64 << 53) as f64;
        (self.least * libm::exp(unit * self.octaves)) as u64
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.zipf {
            Some(zipf) => zipf.rank(|| rng.unit()),
            None => rng.below(self.count),
        }
    }

    fn name(&self, object: u64) -> String {
        format!("image{object:08}")
    }
}

const HOUR: Time = Time::from_s(3_600);

/// Returns the parameters of a service with `rate` requests per second by default.
pub(crate) const fn arrival_parameters(rate: &'static str) -> [Parameter; 6] {
    [
        Parameter {
            name: "arrivals",
            what: "open: requests arrive as a Poisson process at `rate`; closed: each of `clients` sends its next one `think` after the answer",
            default: "open",
            range: Range::Word(&["open", "closed"]),
            source: "httperf is open (Mosberger, Jin, SIGMETRICS 1998), ab and sysbench are closed",
        },
        Parameter {
            name: "rate",
            what: "requests per second (open)",
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
            what: "mean time between an answer and the client's next request, exponential (closed)",
            default: "0s",
            range: Range::Span(Time::ZERO, HOUR),
            source: "ab and sysbench have no think time",
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
            what: "requests after which the program ends; 0: never",
            default: "0",
            range: Range::Count(0, u64::MAX >> 1),
            source: "the run ends first",
        },
    ]
}

/// A request that has arrived or will arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// Time at which the client sends it.
    pub(crate) at: Time,
    /// Number of the client.
    client: u32,
}

enum Law {
    /// Mean time between requests in picoseconds, and the time of the next one.
    Open { gap: f64, next: Time },
    /// Mean think time in picoseconds, and the clients that no worker serves, by the time at which they send.
    Closed { think: f64, clients: BinaryHeap<Reverse<(Time, u32)>> },
}

/// Dispatcher of requests to workers, first come first served.
///
/// A free worker claims the next request and sleeps until it arrives. Claims are made in the order of arrivals, by
/// the first free worker, and no request waits while a worker sleeps: a claim is never for a later request than those
/// still unclaimed.
pub(crate) struct Arrivals {
    law: Law,
    rng: Rng,
    /// Number of claims that may still be made.
    left: u64,
}

fn exponential(mean: f64, rng: &mut Rng) -> Time {
    Time::from_ps((-libm::log(1.0 - rng.unit()) * mean) as u64)
}

impl Arrivals {
    /// Creates the arrivals given by the parameters of [`arrival_parameters`]; also returns how many workers can be
    /// useful.
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

    /// Claims the next request; `None` after the last.
    pub(crate) fn claim(&mut self) -> Option<Arrival> {
        self.left = self.left.checked_sub(1)?;
        Some(match &mut self.law {
            Law::Open { gap, next } => {
                let at = *next;
                *next = at + exponential(*gap, &mut self.rng);
                Arrival { at, client: 0 }
            }
            Law::Closed { clients, .. } => {
                let first = clients.pop().expect("at most as many workers as clients");
                Arrival { at: first.0.0, client: first.0.1 }
            }
        })
    }

    /// Reports that the client of a request has its answer.
    pub(crate) fn answered(&mut self, arrival: Arrival, now: Time) {
        if let Law::Closed { think, clients } = &mut self.law {
            clients.push(Reverse((now + exponential(*think, &mut self.rng), arrival.client)));
        }
    }
}
