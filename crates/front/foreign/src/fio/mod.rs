//! fio: what it measured as a result document, and a result document as it prints its own.

mod jobs;
mod json;
mod measured;
mod merge;
mod print;
mod read;

pub use jobs::{Job, job_of_inline, jobs_of_file};
pub use measured::{Measured, measured};
pub use print::print;
pub use read::read;

/// Percentiles that fio prints unless told otherwise.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Percentiles of a document, by name.
const NAMED: [(&str, f64); 7] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
    ("p99_999", 99.999),
];

#[cfg(test)]
mod tests;
