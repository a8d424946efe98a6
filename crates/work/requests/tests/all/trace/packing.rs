//! Compressed traces, whole and damaged.

use std::io::Write;

use config::Diagnostic;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;
use requests::trace::{TraceOptions, TraceReader};

use crate::trace::support::{drain, read_with};

/// Enough lines for several blocks of any codec, with contents that do not pack to nothing.
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

/// Reads what can be read and then the error.
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
