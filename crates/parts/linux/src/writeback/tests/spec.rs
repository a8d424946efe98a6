//! Limits of the spec.

use crate::writeback::{Bound, DirtyBounds, Writeback, WritebackSpec};
use config::units::{Bytes, Share};

fn spec() -> WritebackSpec {
    WritebackSpec::default()
}

#[test]
fn without_a_word_linux_defaults_hold() {
    let bounds = spec().bounds().expect("good");
    assert_eq!(bounds, DirtyBounds { background: Bound::Percent(10), limit: Bound::Percent(20) });
    assert_eq!(spec().check(4), Ok(()));
    assert_eq!(spec().warning(), None);
}

#[test]
fn a_bound_in_bytes_is_one_in_place_of_the_ratio() {
    let spec = WritebackSpec { dirty_bytes: Some(Bytes::from_kib(64)), ..spec() };
    let bounds = spec.bounds().expect("good");
    assert_eq!(bounds, DirtyBounds { background: Bound::Percent(10), limit: Bound::Bytes(65_536) });
    assert_eq!(spec.warning(), None, "they are not comparable");
}

#[test]
fn a_bound_given_twice_is_an_error() {
    let twice = WritebackSpec {
        dirty_ratio: Some(Share::percent(20)),
        dirty_bytes: Some(Bytes::from_kib(64)),
        ..spec()
    };
    let error = twice.check(1).expect_err("twice");
    assert_eq!(error.key, "dirty_bytes");
    assert_eq!(error.what, "`dirty_ratio` and `dirty_bytes` are both given, and say the same thing twice");
    let twice = WritebackSpec {
        dirty_background_ratio: Some(Share::percent(20)),
        dirty_background_bytes: Some(Bytes::from_kib(64)),
        ..spec()
    };
    assert_eq!(Writeback::new(&twice, 250, 1, 1, 1_000).expect_err("twice").key, "dirty_background_bytes");
}

#[test]
fn every_whole_per_cent_is_one() {
    for percent in 0..=100_u8 {
        let spec = WritebackSpec { dirty_ratio: Some(Share::percent(percent)), ..spec() };
        assert_eq!(spec.bounds().expect("good").limit, Bound::Percent(percent.into()));
    }
    let odd = WritebackSpec { dirty_ratio: Some(Share::new(0.125).expect("a share")), ..spec() };
    assert_eq!(odd.check(1).expect_err("12.5 %").key, "dirty_ratio");
}

#[test]
fn drives_leave_something_to_share() {
    let with =
        |min, max| WritebackSpec { min_ratio: Share::percent(min), max_ratio: Share::percent(max), ..spec() };
    assert_eq!(with(49, 100).check(2), Ok(()));
    assert_eq!(with(50, 100).check(2).expect_err("100 %").key, "min_ratio");
    assert_eq!(with(30, 20).check(1).expect_err("more than the most").key, "min_ratio");
}

#[test]
fn a_background_that_counts_as_half_is_told() {
    let with = |background, limit| WritebackSpec {
        dirty_background_ratio: Some(Share::percent(background)),
        dirty_ratio: Some(Share::percent(limit)),
        ..spec()
    };
    assert_eq!(with(5, 10).warning(), None);
    let expected = "write-back begins at 10 %, which is not below the limit of 10 %: half of the limit counts, as in Linux";
    assert_eq!(with(10, 10).warning().as_deref(), Some(expected));
    let expected = "write-back begins at 10 %, which is not below the limit of 3 %: half of the limit counts, as in Linux";
    let low = WritebackSpec { dirty_ratio: Some(Share::percent(3)), ..spec() };
    assert_eq!(low.warning().as_deref(), Some(expected));
}
