//! Arbitrary bytes, and damaged profiles of every format, are read or refused, never more.

#![allow(clippy::result_large_err, reason = "a diagnostic ends a test: its size costs nothing")]

use crate::support::{CHROME, KERNEL_CSV, NCU, NCU_RAW, NSYS, NSYS_KERNELS, gzip, read};
use proptest::prelude::*;
use sampling::{Bound, Plan, Profile, Rule, Selection};

/// Every kernel is in one group, of its kind and in its range, and every group is sampled.
fn is_partition(profile: &Profile, plan: &Plan) {
    let mut times = vec![0; profile.len()];
    for group in plan.groups() {
        assert!((1..=group.count()).contains(&group.samples()));
        let (min, max) = group.range_ns();
        for kernel in plan.kernels_of(group) {
            let kernel = *kernel as usize;
            times[kernel] += 1;
            assert_eq!(profile.kind_of()[kernel] as usize, group.kind());
            assert!((min..=max).contains(&profile.durations_ns()[kernel]));
        }
    }
    assert!(times.iter().all(|times| *times == 1));
}

/// What is read can be sampled, and the selection reads back.
fn survives(bytes: &[u8]) {
    let Ok(profile) = read(bytes) else { return };
    assert!(!profile.is_empty() && profile.total_ns().is_finite());
    for rule in Rule::ALL {
        let plan = Plan::new(&profile, Bound::new(0.05, 0.95).unwrap(), rule).unwrap();
        is_partition(&profile, &plan);
        let sample = plan.draw(1);
        let prediction = sample.predict(&plan, |kernel| profile.durations_ns()[kernel as usize]);
        assert!(prediction.total_ns().is_finite() && prediction.half_width_ns().is_finite());
        let selection = Selection::new(&plan, &sample, "p", 1);
        assert_eq!(Selection::from_toml("t", &selection.to_toml()).unwrap(), selection);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survives(&bytes);
        survives(&gzip(&bytes));
        let _ = Selection::from_toml("t", &String::from_utf8_lossy(&bytes));
    }

    /// Kernels of a program: few kinds, any durations.
    #[test]
    fn any_kernels(kernels in proptest::collection::vec((0_u8..4, prop_oneof![0.0..1e15, 0.0..9.0, Just(0.0)]), 1..200)) {
        let mut profile = Profile::default();
        for (name, ns) in kernels {
            profile.push(&name.to_string(), None, None, ns).unwrap();
        }
        for rule in Rule::ALL {
            for error in [0.001, 0.05, 0.9] {
                is_partition(&profile, &Plan::new(&profile, Bound::new(error, 0.95).unwrap(), rule).unwrap());
            }
            let samples = |error| Plan::new(&profile, Bound::new(error, 0.95).unwrap(), rule).unwrap().samples();
            prop_assert!(samples(0.05) <= samples(0.01), "a wider bound needs no more kernels");
        }
    }

    #[test]
    fn any_lines_behind_a_header(which in 0_usize..5, lines in "([0-9a-z.,\"x() -]{0,40}\n){0,12}") {
        let good = [KERNEL_CSV, NSYS, NSYS_KERNELS, NCU, NCU_RAW][which];
        let header = good.lines().position(|line| line.contains("ame") && line.contains(',') && !line.contains("hello"));
        let until: usize = good.split_inclusive('\n').take(header.unwrap() + 1).map(str::len).sum();
        survives((good[..until].to_owned() + &lines).as_bytes());
    }

    #[test]
    fn damaged_profiles(
        which in 0_usize..6,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        packed in any::<bool>(),
    ) {
        let mut bytes = [KERNEL_CSV, CHROME, NSYS, NSYS_KERNELS, NCU, NCU_RAW][which].as_bytes().to_vec();
        for (place, byte) in damage {
            // Printable more often than not: what is no text is refused at once.
            let at = place.index(bytes.len());
            bytes[at] = if byte < 200 { b' ' + byte % 95 } else { byte };
        }
        survives(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        survives(&if packed { gzip(&bytes) } else { bytes });
    }
}
