//! Limits of a request, and bios that exceed them.

use super::*;
use crate::block::{Limits, Map};

/// `nvme_set_queue_limits`: pages of the transfer and one, 127 at most; `blk_queue_max_hw_sectors`: 1280 KiB at most.
#[test]
fn limits_of_nvme() {
    let limits = |max_transfer| Limits::new(&BlockSpec::default(), &Device { max_transfer, ..DEVICE });
    let bytes_and_segments = |kib: u64| (limits(kib * KIB).bytes / 1024, limits(kib * KIB).segments);
    assert_eq!(bytes_and_segments(128), (128, 33));
    assert_eq!(bytes_and_segments(512), (512, 127));
    assert_eq!(bytes_and_segments(2048), (1280, 127));
    assert_eq!((bytes_and_segments(0), limits(0).zeroes), ((1280, 127), 4 << 20));
    let spec = BlockSpec { max_sectors: config::units::Bytes::from_kib(64), ..BlockSpec::default() };
    assert_eq!(Limits::new(&spec, &DEVICE).bytes, 64 << 10);
}

/// Pages of memory that lie side by side are one segment: 127 of 8 KiB are 1016 KiB, of 64 KiB more than `max_sectors` (`bio_split_rw`).
#[test]
fn pages_side_by_side_are_one_segment() {
    let limits = |kib| {
        let spec = BlockSpec { contiguous: config::units::Bytes::from_kib(kib), ..BlockSpec::default() };
        Limits::new(&spec, &Device { max_transfer: 0, ..DEVICE })
    };
    let unsplit = [4, 8, 64].map(|kib| limits(kib).unsplit(IoOp::Write) / 1024);
    assert_eq!(unsplit, [508, 1016, 1280]);
    assert_eq!(limits(8).segments_of(IoOp::Read, 20 << 10), 3);
}

/// `bio_split_rw`: 1 MiB is 508 + 508 + 8 KiB by 127 segments, and eight times 128 KiB by such a transfer. The owner hears once.
#[test]
fn a_bio_is_split_by_the_limits() {
    for (max_transfer, parts) in [(0, vec![508, 508, 8]), (128 * KIB, vec![128; 8])] {
        let mut bench = Bench::new(&spec(SchedulerPolicy::none), Device { max_transfer, ..DEVICE }, 1);
        let announced = Bio { announced: 256, ..write(64 * KIB, 1024 * KIB, 7) };
        assert_eq!(bench.submit(announced), Submitted::Queued);
        let mut offset = 64;
        for (issued, part) in bench.issued.iter().zip(&parts) {
            assert_eq!((issued.offset / KIB, u64::from(issued.bytes) / KIB), (offset, *part));
            offset += part;
        }
        assert_eq!(bench.issued.iter().map(|issued| issued.announced).sum::<u32>(), 256);
        assert_eq!((bench.issued.len(), bench.issued[0].announced), (parts.len(), 256));
        assert_eq!(bench.queue.stats().splits, parts.len() as u64 - 1);
        for issued in bench.issued.clone() {
            assert!(bench.done.is_empty());
            bench.complete(issued);
        }
        assert_eq!((bench.done.as_slice(), bench.queue.is_idle()), ([7].as_slice(), true));
    }
}

/// An error of one part is the bio's.
#[test]
fn the_first_error_of_the_parts_is_told() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), DEVICE, 1);
    assert_eq!(bench.submit(read(0, 1024 * KIB, 7)), Submitted::Queued);
    let status = [Status::Success, Status::UnrecoveredRead, Status::Success];
    for (issued, status) in bench.issued.clone().iter().zip(status) {
        bench.queue.complete(issued.hctx, issued.tag, status, bench.now, &mut bench.effects);
    }
    let told: Vec<_> = bench.effects.done.iter().map(|done| (done.owner, done.status)).collect();
    assert_eq!(told, [(7, Status::UnrecoveredRead)]);
}

/// Eight cores on three queues: the first two have a core more.
#[test]
fn cores_are_spread_over_queues() {
    let map = Map::new(8, 3);
    assert_eq!((0..8).map(|core| map.hctx(core)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 2, 2]);
    for cores in 1..20 {
        for hctxs in 1..=cores {
            let map = Map::new(cores, hctxs);
            let all: Vec<_> =
                (0..hctxs).flat_map(|hctx| map.cores_of(hctx).map(move |core| (core, hctx))).collect();
            assert!(
                all.iter().copied().eq((0..cores).map(|core| (core, map.hctx(core)))),
                "{cores} on {hctxs}"
            );
        }
    }
}
