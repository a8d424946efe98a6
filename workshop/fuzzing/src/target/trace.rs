//! Block traces: detection, every reader, unpacking, inspection, conversion. The first byte chooses options.

use super::Target;
use requests::trace::{TraceOptions, TraceReader, formats, fuzz_one};
use std::io::Cursor;

pub(super) const TARGET: Target = Target {
    name: "trace",
    about: "block traces in every format",
    run: |bytes| fuzz_one(bytes, programs::FILES),
    examples,
    reads,
    cases: 20_000,
};

/// The example of each format behind the byte that names it.
fn examples() -> Vec<Vec<u8>> {
    let named = |n: usize| (n as u8) << 1 | 1;
    formats().enumerate().map(|(n, info)| [&[named(n)], &info.content()[..]].concat()).collect()
}

fn reads(bytes: &[u8]) -> bool {
    let Some((choice, content)) = bytes.split_first() else { return false };
    let format = formats().nth(usize::from(choice >> 1)).map(|info| info.name.to_owned());
    let options = TraceOptions { format, others: programs::FILES, ..TraceOptions::default() };
    TraceReader::from_read("example", Cursor::new(content.to_vec()), &options).is_ok()
}
