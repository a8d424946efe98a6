//! The entry point of a fuzzer.

use std::io::Cursor;

use crate::trace::{
    ConvertOptions, OtherFiles, Remap, TimeScale, TraceOptions, TraceReader, convert, formats, inspect_read,
};

/// Reads `data` every way there is; the first byte chooses options. Panics if a promise of the reader is broken.
pub fn fuzz_one(data: &[u8], others: OtherFiles) {
    let Some((choice, content)) = data.split_first() else {
        return;
    };
    let names: Vec<&str> = formats().map(|info| info.name).collect();
    let options = TraceOptions {
        format: (choice & 1 != 0).then(|| names[usize::from(choice >> 1) % names.len()].to_owned()),
        lenient: choice & 2 != 0,
        capacity: (choice & 4 != 0).then_some(64 << 20),
        remap: [Remap::Error, Remap::Wrap, Remap::Compact, Remap::Fit][usize::from(choice >> 3) % 4],
        sort_window: usize::from(choice >> 5),
        time_scale: TimeScale::new(1, 1 + u64::from(choice >> 6)).unwrap_or(TimeScale::ONE),
        others,
        ..TraceOptions::default()
    };
    in_order_and_on_the_device(content, &options);
    let plain = TraceOptions { format: options.format.clone(), others, ..TraceOptions::default() };
    if let Ok(inspection) = inspect_read("fuzz", Cursor::new(content.to_vec()), &plain) {
        assert!(!inspection.to_string().is_empty());
        assert!(inspection.requests > 0);
    }
    if let Ok(mut reader) = TraceReader::from_read("fuzz", Cursor::new(content.to_vec()), &options) {
        let to = ConvertOptions { to: "csv".to_owned(), sample: None, lenient: false };
        // Whatever the reader refuses, the writer hands on; it must not refuse anything itself.
        let _ = convert(&mut reader, &to, &mut std::io::sink());
    }
}

fn in_order_and_on_the_device(content: &[u8], options: &TraceOptions) {
    let Ok(mut reader) = TraceReader::from_read("fuzz", Cursor::new(content.to_vec()), options) else {
        return;
    };
    let mut last = engine::Time::ZERO;
    // A request that `compact` scatters can have any number of pieces.
    for _ in 0..10_000 {
        let Ok(Some(request)) = reader.next() else {
            break;
        };
        assert!(request.at >= last, "{} after {last}", request.at);
        last = request.at;
        let end = request.offset.checked_add(request.bytes);
        assert!(end.is_some_and(|end| options.capacity.is_none_or(|capacity| end <= capacity)));
    }
    let _ = reader.notes().warnings();
}
