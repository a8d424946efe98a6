//! Measures the size of the page of a run with 10^7 requests, and the time to make it: from the document's text to the
//! page's.
//!
//! The bounds are 3 MB and 2 s; a run that breaks one fails.

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

/// Number of times the page is made; the median is printed.
const TURNS: usize = 9;

fn main() {
    let document = common::document(10_000_000).to_string();
    let mut bytes = 0;
    let mut seconds: Vec<f64> = (0..TURNS)
        .map(|_| {
            let begun = Instant::now();
            let run = report::Run::read("a.json", document.as_bytes()).expect("it is a document");
            bytes = report::run(&run, None).len();
            begun.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds[TURNS / 2];
    println!(
        "document {} kB, page {} kB, {:.1} ms (median of {TURNS})",
        document.len() / 1000,
        bytes / 1000,
        1e3 * median
    );
    assert!(bytes < 3_000_000, "a page must be below 3 MB");
    assert!(median < 2.0, "a page must take less than 2 s");
}
