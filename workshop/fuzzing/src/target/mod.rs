//! Targets, which take bytes.

mod config;
mod foreign;
mod graph;
mod identities;
mod machine;
mod platforms;
mod recorded;
mod state;
mod trace;

/// Reader of outside input.
pub struct Target {
    /// Name.
    pub name: &'static str,
    /// Description of its input.
    pub about: &'static str,
    /// Reads and uses the bytes; panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Valid examples.
    pub examples: fn() -> Vec<Vec<u8>>,
    /// Returns whether the bytes are accepted.
    pub reads: fn(&[u8]) -> bool,
    /// Number of cases that run with every change to the code: a few seconds.
    pub cases: u64,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    trace::TARGET,
    config::FIO,
    config::TARGET,
    graph::TARGET,
    recorded::GPU_TRACE,
    recorded::PROFILE,
    recorded::RECORDING,
    state::TARGET,
    state::SIGNED,
    trace::STRACE,
    trace::IOLOG,
    foreign::MQSIM,
    foreign::SIMPLESSD,
    foreign::FIO_JSON,
    foreign::POINT,
    machine::TARGET,
];

/// Finds a target by name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Converts texts to examples.
fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|text| text.as_bytes().to_vec()).collect()
}
