//! A device that is saved and loaded goes on as the one that was not.

use ssd::device::SnapshotFault;
use ssd::soak::{Combination, End, Host, Map, combinations};

/// A host before a copy of its device, which has been loaded from a snapshot.
fn copied(host: &Host, combination: &Combination) -> Host {
    let mut bytes = Vec::new();
    host.device.save(&mut bytes).unwrap_or_else(|e| panic!("{combination}: {e}"));
    let mut copy = combination.build(99).expect("it can be built");
    let mut input = bytes.as_slice();
    copy.load(&mut input).unwrap_or_else(|e| panic!("{combination}: {e}"));
    assert!(input.is_empty(), "{combination}");
    let mut again = Vec::new();
    copy.save(&mut again).unwrap_or_else(|e| panic!("{combination}: {e}"));
    assert!(bytes == again, "{combination}: what was loaded is saved in other words");
    host.before(copy)
}

#[test]
fn a_copy_goes_on_as_the_original_does() {
    for combination in &combinations(7) {
        let device = combination.build(7).expect("it can be built");
        let mut host = Host::new(device, 7, combination.depth);
        for operations in [3_000, 6_000, 9_000] {
            // The copy is built with another seed: what it draws is part of the state.
            let mut copy = copied(&host, combination);
            // What a map cache holds is nothing that a shadow could take for granted.
            if combination.map == Map::Table {
                copy.device.attach_shadow();
            }
            let ends = (host.drive(operations), copy.drive(operations));
            assert_eq!(ends, (End::Done, End::Done), "{combination}");
            assert_eq!(copy.digest(), host.digest(), "{combination}");
            assert_eq!(copy.failed, [], "{combination}");
            let counted = |h: &Host| (h.device.ftl.counters, h.device.backend.counters.clone());
            assert_eq!(counted(&copy), counted(&host), "{combination}");
            host = copy;
        }
    }
}

#[test]
fn a_snapshot_that_does_not_fit_is_refused() {
    let all = combinations(7);
    let device = |c: &Combination| c.build(7).expect("it can be built");
    let first = device(&all[0]);
    let mut bytes = Vec::new();
    first.save(&mut bytes).expect("it is idle");
    let other = all.iter().map(device).find(|d| d.capacity() != first.capacity());
    let mut other = other.expect("capacities differ");
    assert_eq!(other.load(&mut bytes.as_slice()), Err(SnapshotFault::OtherDevice));
    for cut in [3, bytes.len() / 2, bytes.len() - 1] {
        let result = device(&all[0]).load(&mut &bytes[..cut]);
        assert_eq!(result, Err(SnapshotFault::Damaged), "cut at {cut} of {}", bytes.len());
    }
}
