//! Properties of any input.

use std::io::{Cursor, Write};

use engine::Time;
use proptest::prelude::*;
use proto::{IoOp, IoRequest};
use requests::trace::{
    ConvertOptions, OtherFiles, TraceOptions, TraceReader, convert, formats, fuzz_one, inspect_read,
};

use super::{drain, format, read_with};
use config::Diagnostic;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

/// Generates bytes that look like traces often enough to get past the first field.
fn almost_a_trace() -> impl Strategy<Value = Vec<u8>> {
    let examples: Vec<Vec<u8>> = formats().map(|info| info.content()).collect();
    let piece = prop_oneof![
        4 => prop::sample::select(examples),
        2 => "[0-9]{1,20}([ ,][0-9a-fRW.]{1,12}){0,8}\n".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::sample::select(vec!["\n", "\r\n", "#\n", ",", " ", "-", "0", "99999999999999999999", "fio version 2 iolog\n"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    (
        any::<u8>(),
        prop::collection::vec(piece, 0..12),
        prop::collection::vec((any::<usize>(), any::<u8>()), 0..3),
    )
        .prop_map(|(choice, pieces, edits)| {
            let mut bytes = vec![choice];
            bytes.extend(pieces.concat());
            for (at, byte) in edits {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            bytes
        })
}

const MAGICS: [&[u8]; 5] = [
    b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
    b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46",
    b"BZh91AY&SY",
    b"\x28\xb5\x2f\xfd\x04\x58",
    b"\x50\x2a\x4d\x18\x02\0\0\0",
];

/// Generates a request that every written format can express, in the coarsest unit of time (us).
fn plain_request() -> impl Strategy<Value = (u64, bool, u64, u64, u8)> {
    (0_u64..5_000, any::<bool>(), 0_u64..1 << 40, 1_u64..4_096, 0_u8..4)
}

fn stream(rows: &[(u64, bool, u64, u64, u8)]) -> Vec<IoRequest> {
    let mut at = 0;
    let mut seen: Vec<u8> = Vec::new();
    let row = |(index, (gap, read, sector, sectors, flow)): (usize, &(u64, bool, u64, u64, u8))| {
        // The first request is at time zero: a reader rebases to it.
        at += if index == 0 { 0 } else { *gap };
        let number = seen.iter().position(|f| f == flow).unwrap_or_else(|| {
            seen.push(*flow);
            seen.len() - 1
        });
        IoRequest {
            at: Time::from_us(at),
            op: if *read { IoOp::Read } else { IoOp::Write },
            offset: sector * 512,
            bytes: sectors * 512,
            flow: number as u16,
            fua: false,
        }
    };
    rows.iter().enumerate().map(row).collect()
}

fn as_csv(requests: &[IoRequest]) -> String {
    let line = |r: &IoRequest| {
        let op = if r.op == IoOp::Read { "R" } else { "W" };
        format!("{},stream{},{op},{},{}\n", r.at.ps(), r.flow, r.offset, r.bytes)
    };
    let lines: String = requests.iter().map(line).collect();
    format!("time_ps,flow,op,offset_bytes,size_bytes\n{lines}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_panic_or_come_out_unsorted_or_beyond_the_device(bytes in almost_a_trace()) {
        fuzz_one(&bytes, OtherFiles::NONE);
    }

    /// Reads a block of good lines, with bytes changed or cut off.
    #[test]
    fn no_damage_to_a_good_pack_panics(
        choice in any::<u8>(),
        format in any::<prop::sample::Index>(),
        pack in 0_usize..4,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in any::<prop::sample::Index>(),
    ) {
        let examples: Vec<&str> = formats().map(|info| info.example).collect();
        let text = format.get(&examples).repeat(20);
        let mut packed = PACKS[pack].1(text.as_bytes());
        for (at, byte) in edits {
            let at = at.index(packed.len());
            packed[at] = byte;
        }
        packed.truncate(1 + cut.index(packed.len()));
        fuzz_one(&[&[choice], &packed[..]].concat(), OtherFiles::NONE);
    }

    #[test]
    fn no_damaged_pack_panics(magic in 0_usize..5, choice in any::<u8>(), rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = vec![choice];
        bytes.extend_from_slice(MAGICS[magic]);
        bytes.extend(rest);
        fuzz_one(&bytes, OtherFiles::NONE);
    }

    #[test]
    fn writing_and_reading_gives_the_same_requests(
        rows in prop::collection::vec(plain_request(), 1..60),
        target in prop::sample::select(vec!["mqsim", "msr", "iolog3", "csv"]),
    ) {
        let requests = stream(&rows);
        let mut reader =
            TraceReader::from_read("t", Cursor::new(as_csv(&requests)), &format("csv")).unwrap();
        let mut out = Vec::new();
        let options = ConvertOptions { to: target.to_owned(), sample: None, lenient: false };
        let done = convert(&mut reader, &options, &mut out).unwrap();
        prop_assert_eq!((done.written, done.times_cut), (requests.len() as u64, 0));
        let (back, notes) = read_with(&out, &format(target)).unwrap();
        prop_assert_eq!(&back, &requests);
        prop_assert_eq!(notes.flows.names().len(), reader.notes().flows.names().len());
        // The output is also recognised as its format.
        let seen = requests::trace::detect(&out).unwrap();
        prop_assert!(seen.candidates.iter().any(|c| c.format == target));
    }

    #[test]
    fn an_inspection_agrees_with_counting(rows in prop::collection::vec(plain_request(), 1..60)) {
        let requests = stream(&rows);
        let seen = inspect_read("t", Cursor::new(as_csv(&requests)), &format("csv")).unwrap();
        let reads: Vec<&IoRequest> = requests.iter().filter(|r| r.op == IoOp::Read).collect();
        prop_assert_eq!(seen.reads, reads.len() as u64);
        prop_assert_eq!(seen.read_bytes, reads.iter().map(|r| r.bytes).sum::<u64>());
        let mut pages: Vec<(u16, u64)> = requests
            .iter()
            .flat_map(|r| (r.offset / 4096..(r.offset + r.bytes).div_ceil(4096)).map(|page| (r.flow, page)))
            .collect();
        pages.sort_unstable();
        pages.dedup();
        prop_assert_eq!(seen.footprint_bytes, pages.len() as u64 * 4096);
        let mut sizes: Vec<u64> = requests.iter().map(|r| r.bytes).collect();
        sizes.sort_unstable();
        prop_assert_eq!(seen.sizes.median, sizes[(sizes.len() - 1) / 2]);
        let sequential = (0..requests.len()).filter(|&i| {
            let before = requests[..i].iter().rev().find(|r| r.flow == requests[i].flow);
            before.is_some_and(|b| b.offset + b.bytes == requests[i].offset)
        });
        prop_assert_eq!(seen.sequential_share, sequential.count() as f64 / requests.len() as f64);
        let mut per_second = std::collections::BTreeMap::new();
        requests.iter().for_each(|r| *per_second.entry(r.at.ps() / 1_000_000_000_000).or_insert(0_u64) += 1);
        prop_assert_eq!(seen.peak_per_s, *per_second.values().max().unwrap());
        prop_assert_eq!(seen.span_s, requests.last().unwrap().at.as_s_f64());
    }

    #[test]
    fn shuffling_within_the_window_changes_nothing(rows in prop::collection::vec(plain_request(), 1..60), seed in any::<u64>()) {
        let mut requests = stream(&rows);
        // Distinct times, so that there is a single right order.
        for (n, request) in requests.iter_mut().enumerate() {
            request.at = Time::from_us(n as u64 * 7);
            request.flow = 0;
        }
        let mut mixed = requests.clone();
        let mut x = seed | 1;
        for i in (1..mixed.len()).rev() {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            mixed.swap(i, (x >> 33) as usize % (i + 1));
        }
        let mut reader = TraceReader::from_read("t", Cursor::new(as_csv(&mixed)), &format("csv")).unwrap();
        prop_assert_eq!(drain(&mut reader).unwrap(), requests);
    }
}

// Compressed traces, whole and damaged.

/// Returns enough lines for several blocks of any codec, with incompressible content.
fn trace() -> String {
    let mut x = 88_172_645_463_325_252_u64;
    let line = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        format!("{} 0 {} 8 {}\n", n * 1000, x % 1_000_000_007, x >> 63)
    };
    (0..20_000).map(line).collect()
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn xz(data: &[u8]) -> Vec<u8> {
    let mut encoder = XzEncoder::new(Vec::new(), 1);
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(data: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
}

pub(crate) type Pack = fn(&[u8]) -> Vec<u8>;

pub(crate) const PACKS: [(&str, Pack); 4] = [("gzip", gzip), ("xz", xz), ("bzip2", bzip2), ("zstd", zstd)];

fn options() -> TraceOptions {
    TraceOptions { format: Some("mqsim".to_owned()), ..TraceOptions::default() }
}

#[test]
fn every_packing_gives_the_plain_requests() {
    let plain = trace();
    let expected = read_with(&plain, &options()).unwrap().0;
    assert_eq!(expected.len(), 20_000);
    for (name, pack) in PACKS {
        let (requests, notes) = read_with(pack(plain.as_bytes()), &options()).unwrap();
        assert_eq!(requests, expected, "{name}");
        assert_eq!(notes.compression, name);
    }
}

#[test]
fn packed_files_one_after_the_other_are_one_trace() {
    let plain = trace();
    let expected = read_with(&plain, &options()).unwrap().0;
    // The cut is inside a line: members are of bytes, not of lines.
    let (head, tail) = plain.as_bytes().split_at(plain.len() / 3);
    for (name, pack) in PACKS {
        let mut packed = pack(head);
        packed.extend(pack(b""));
        packed.extend(pack(tail));
        assert_eq!(read_with(packed, &options()).unwrap().0, expected, "{name}");
    }
}

#[test]
fn a_skippable_zstd_frame_is_skipped() {
    let plain = trace();
    let mut packed = b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello".to_vec();
    packed.extend(zstd(plain.as_bytes()));
    assert_eq!(read_with(packed, &options()).unwrap().0.len(), 20_000);
}

/// Reads up to the error, and returns it.
fn until_error(packed: Vec<u8>) -> (usize, Diagnostic) {
    let mut reader = match TraceReader::from_read("t", std::io::Cursor::new(packed), &options()) {
        Ok(reader) => reader,
        Err(error) => return (0, error),
    };
    match drain(&mut reader) {
        Ok(all) => panic!("read {} requests of damaged data", all.len()),
        Err(error) => (reader.notes().lines as usize, error),
    }
}

#[test]
fn a_cut_file_says_how_far_it_was_read() {
    let plain = trace();
    for (name, pack) in PACKS {
        let mut packed = pack(plain.as_bytes());
        let cut = packed.len() * 2 / 3;
        packed.truncate(cut);
        let (lines, error) = until_error(packed);
        let text = error.to_string();
        assert!(text.contains(&format!("the {name} data ends early")), "{text}");
        assert!(text.contains(" bytes of the file") && text.contains("whole lines were read"), "{text}");
        let place = error.place.unwrap();
        assert_eq!(place.line, lines as u64 + 1, "{name}");
        assert!(place.line < 20_001, "{name}");
    }
}

#[test]
fn a_cut_in_the_last_bytes_is_seen() {
    let plain = trace();
    for (name, pack) in PACKS {
        let mut packed = pack(plain.as_bytes());
        // Every codec but this zstd encoder (no checksum by then) ends with a checksum; all end with a block end.
        packed.truncate(packed.len() - 5);
        let text = until_error(packed).1.to_string();
        assert!(text.contains("ends early"), "{name}: {text}");
    }
}

#[test]
fn flipped_bytes_are_seen() {
    let plain = trace();
    for (name, pack) in [("gzip", gzip as Pack), ("xz", xz), ("bzip2", bzip2)] {
        let mut packed = pack(plain.as_bytes());
        let middle = packed.len() / 2;
        packed[middle] ^= 0x10;
        let (_, error) = until_error(packed);
        let text = error.to_string();
        // The flipped bit may make a bad line before the codec's checksum is reached; either is an error.
        assert!(text.contains(&format!("the {name} data")) || error.place.is_some(), "{text}");
    }
}

#[test]
fn archives_and_packed_packs_are_named() {
    let mut tar = vec![b'a'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    for (content, word) in [
        (tar, "a tar archive"),
        (b"PK\x03\x04rest of a zip".to_vec(), "a zip archive"),
        (gzip(&gzip(b"1 0 0 8 1\n")), "gzip data inside"),
        (b"\x07\x74\x61\x65\0\0\0\0".to_vec(), "blkparse -i"),
        (b"\xff\xfe1\0 \0".to_vec(), "UTF-16"),
    ] {
        for options in [TraceOptions::default(), options()] {
            let text = read_with(&content, &options).unwrap_err().to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}
