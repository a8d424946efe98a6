//! Programs `img-f` and `img-u`: an image server.

use super::demand::Images;
use super::demand::{self, Arrivals};
use super::objects::{self, Objects};
use super::server::Server;
use super::{Built, DRIVE, Entry, Named, Options, Parameter, Range};

const SET: &[Parameter] = &[
    Parameter {
        name: "size",
        what: "mean bytes of all images",
        default: "8GB",
        range: Range::Size(1 << 20, 1 << 50),
        source: "chosen: larger than the memory for pages",
    },
    Parameter {
        name: "smallest",
        what: "bytes of the smallest image; sizes are log-uniform",
        default: "16KB",
        range: Range::Size(512, 1 << 30),
        source: "chosen without a strong source: sweep it",
    },
    Parameter {
        name: "largest",
        what: "bytes of the largest image",
        default: "256KB",
        range: Range::Size(512, 1 << 30),
        source: "chosen without a strong source: sweep it",
    },
    Parameter {
        name: "theta",
        what: "skew of Zipf's law over the images; 0: uniform",
        default: "1",
        range: Range::Real(0.0, 4.0),
        source: "chosen: as for Apache; requests for photos follow Zipf's law, less steep behind each cache (Huang et al., SOSP 2013)",
    },
    DRIVE,
];

const WHAT: &str = "images, one file each, with log-uniform sizes";

/// Program of fetches.
pub(super) const FETCH: Entry = Entry {
    name: "img-f",
    source: "chosen; Apache 2.4",
    what: WHAT,
    parameters: &[&demand::arrival_parameters("2000"), SET, objects::COMMON, &[objects::uploads("0")]],
    build,
};

/// Program of uploads.
pub(super) const UPLOAD: Entry = Entry {
    name: "img-u",
    source: "chosen; Apache 2.4 with mod_dav",
    what: WHAT,
    parameters: &[&demand::arrival_parameters("2000"), SET, objects::COMMON, &[objects::uploads("100")]],
    build,
};

fn build(options: &Options, named: Named<'_>) -> Built {
    let range = (options.whole("smallest"), options.whole("largest"));
    if range.0 > range.1 {
        return Err(options.refused("smallest", "at most `largest`".to_owned()));
    }
    let salt = named.stream("sizes").next_u64();
    let set = Images::new(options.whole("size"), range, options.real("theta"), salt);
    let arrivals = Arrivals::new(options, named.stream("arrivals"));
    let service = Objects::new(set, options, named.stream("requests"), arrivals.1)?;
    Ok(Box::new(Server::new(named.name, service, arrivals, options.whole("requests"))))
}
