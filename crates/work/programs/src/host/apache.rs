//! `apache-f` and `apache-u`: static objects of a web server.

use engine::Rng;

use super::demand::SpecWeb;
use super::demand::{self, Arrivals};
use super::objects::{self, Objects};
use super::server::Server;
use super::{Built, DRIVE, Entry, Named, Options, Parameter, Range};

const SET: &[Parameter] = &[
    Parameter {
        name: "size",
        what: "bytes of all objects",
        default: "8GB",
        range: Range::Size(1 << 20, 1 << 50),
        source: "chosen: larger than the memory for pages",
    },
    Parameter {
        name: "theta",
        what: "skew of Zipf's law over the directories",
        default: "1",
        range: Range::Real(0.01, 4.0),
        source: "SPECweb99",
    },
    DRIVE,
];

const WHAT: &str = "static objects of a web server: files of SPECweb99's classes (35, 50, 14, 1 % of the requests for up to 1, 10, 100 KB and 1 MB)";

/// Program of fetches.
pub(super) const FETCH: Entry = Entry {
    name: "apache-f",
    source: "SPECweb99; Apache 2.4",
    what: WHAT,
    parameters: &[&demand::arrival_parameters("4000"), SET, objects::COMMON, &[objects::uploads("0")]],
    build,
};

/// Program of uploads.
pub(super) const UPLOAD: Entry = Entry {
    name: "apache-u",
    source: "SPECweb99; Apache 2.4 with mod_dav",
    what: WHAT,
    parameters: &[&demand::arrival_parameters("4000"), SET, objects::COMMON, &[objects::uploads("100")]],
    build,
};

fn build(options: &Options, named: Named<'_>) -> Built {
    let set = SpecWeb::new(options.whole("size"), options.real("theta"));
    let arrivals = Arrivals::new(options, named.stream("arrivals"));
    let requests: Rng = named.stream("requests");
    let service = Objects::new(set, options, requests, arrivals.1)?;
    Ok(Box::new(Server::new(named.name, service, arrivals, options.whole("requests"))))
}
