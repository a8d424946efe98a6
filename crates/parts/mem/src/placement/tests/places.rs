//! Where pages lie.

use super::*;
use proptest::prelude::*;

fn settled(pages: &[u64], policy: PlacementPolicy, extent: Extent) -> Box<dyn Placing> {
    let mut built = policy.build(&spec(pages, PlacementPolicy::ranges).targets());
    built.check().expect("suits its memories");
    built.settle(&extent);
    built
}

fn interleaved(granule: u64) -> PlacementPolicy {
    PlacementPolicy::interleave(interleave::Params { granule: Bytes::new(granule * PAGE) })
}

/// The memory and the frame of each page, asked for in this order.
fn places(policy: &mut dyn Placing, pages: impl Iterator<Item = u32>) -> Vec<(u8, u32)> {
    pages.map(|page| policy.place(page, Time::ZERO).0).map(|place| (place.target, place.frame)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Each page has a frame of its own, the inverse finds it, and no frame lies beyond what its memory holds or was told to hold; where
    /// all is used, all of it is.
    #[test]
    fn every_policy_is_a_bijection(
        granules in prop::collection::vec(1u64..40, 1..6),
        span in prop::sample::select(vec![1u64, 2, 8]),
        short in 0u64..30,
        tables in 0u32..6,
        seed in any::<u64>(),
    ) {
        let sizes: Vec<u64> = granules.iter().map(|count| count * span).collect();
        let total: u64 = sizes.iter().sum();
        let end = total.saturating_sub(short).max(1) as u32;
        let extent = Extent { tables: end.saturating_sub(tables), end };
        let mut order: Vec<u32> = (0..end).collect();
        engine::Rng::stream(seed, "order").shuffle(&mut order);
        let policies = PlacementPolicy::all_defaults().into_iter().chain([interleaved(span)]);
        for policy in policies {
            let name = policy.name();
            let mut built = settled(&sizes, policy, extent);
            let mut frames = std::collections::BTreeSet::new();
            for page in &order {
                let (place, _) = built.place(*page, Time::ZERO);
                prop_assert!(frames.insert(place), "{} gives {:?} twice", name, place);
                prop_assert!(place.frame < built.frames(place.target), "{}: {:?}", name, place);
                prop_assert_eq!((built.find(*page), built.page_in(place)), (Some(place), Some(*page)));
                prop_assert_eq!(built.place(*page, Time::ZERO), (place, false));
            }
            for (target, size) in sizes.iter().enumerate() {
                let used = u64::from(built.frames(target as u8));
                prop_assert!(used <= *size && (short > 0 || used == *size), "{} {} of {}", name, used, size);
            }
            prop_assert_eq!(built.find(end), None);
        }
    }

    /// By the definition: of the granules that no earlier memory has, the first `n` have `ceil(n * size / rest)` in a memory.
    #[test]
    fn interleaving_is_in_the_proportion_of_sizes(sizes in prop::collection::vec(1u64..60, 1..6)) {
        let total: u64 = sizes.iter().sum();
        let mut built = settled(&sizes, interleaved(1), Extent { tables: total as u32, end: total as u32 });
        let mut counts = vec![0u64; sizes.len()];
        for n in 1..=total {
            counts[usize::from(built.place(n as u32 - 1, Time::ZERO).0.target)] += 1;
            let (mut left, mut rest) = (n, total);
            for (count, size) in counts.iter().zip(&sizes) {
                let expected = left.checked_mul(*size).expect("small").div_ceil(rest);
                prop_assert_eq!(*count, expected);
                (left, rest) = (left - expected, rest - size);
            }
            // The first memory is never a whole granule from its exact share.
            let off = |count: u64, size: u64| (count * total).abs_diff(n * size);
            prop_assert!(off(counts[0], sizes[0]) < total);
        }
        prop_assert_eq!(counts, sizes);
    }
}

#[test]
fn equal_memories_take_granules_in_turn() {
    let extent = Extent { tables: 12, end: 12 };
    let mut built = settled(&[4, 4, 4], interleaved(2), extent);
    let expected =
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 2), (2, 3)];
    assert_eq!(places(&mut *built, 0..12), expected);
}

#[test]
fn one_in_five_goes_to_a_memory_of_a_fifth() {
    let mut built = settled(&[2, 8], interleaved(1), Extent { tables: 10, end: 10 });
    let targets: Vec<u8> = places(&mut *built, 0..10).into_iter().map(|(target, _)| target).collect();
    assert_eq!(targets, [0, 1, 1, 1, 1, 0, 1, 1, 1, 1]);
    // What memories hold of the first seven pages.
    let built = settled(&[2, 8], interleaved(1), Extent { tables: 7, end: 7 });
    assert_eq!((built.frames(0), built.frames(1)), (2, 5));
}

#[test]
fn ranges_fill_memories_by_address() {
    let mut built = settled(&[3, 2, 4], PlacementPolicy::ranges, Extent { tables: 5, end: 7 });
    assert_eq!(places(&mut *built, 0..7), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!([0, 1, 2].map(|target| built.frames(target)), [3, 2, 2]);
}

#[test]
fn first_touch_fills_memories_in_order_behind_page_tables() {
    for policy in [PlacementPolicy::first_touch, PlacementPolicy::hot(eager())] {
        // Pages 6 and 7 hold page tables.
        let mut built = settled(&[4, 2, 9], policy, Extent { tables: 6, end: 8 });
        assert_eq!(built.find(6), Some(Place { target: 0, frame: 0 }));
        assert_eq!((built.find(5), built.page_in(Place { target: 0, frame: 2 })), (None, None));
        let order = [5, 7, 0, 5, 3, 1, 2, 4].into_iter();
        let expected = [(0, 2), (0, 1), (0, 3), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1)];
        assert_eq!(places(&mut *built, order), expected);
        assert_eq!([0, 1, 2].map(|target| built.frames(target)), [4, 2, 2]);
    }
}

/// Physical addresses and those of memories, there and back.
#[test]
fn addresses_keep_their_place_in_the_page() {
    let mut placement =
        Placement::new(&spec(&[1, 8], PlacementPolicy::first_touch), LINE).expect("can be built");
    placement.set_extent(4 * PAGE, 4 * PAGE).expect("there is room");
    assert_eq!(placement.place_of(3 * PAGE), None);
    placement.warm(3 * PAGE);
    placement.warm(2 * PAGE + 7);
    assert_eq!(placement.place_of(3 * PAGE + 130), Some((0, 130)));
    assert_eq!(placement.place_of(2 * PAGE + 1), Some((1, 1)));
    assert_eq!((placement.address_of(1, 5), placement.address_of(1, PAGE)), (Some(2 * PAGE + 5), None));
    assert_eq!((placement.address_of(0, PAGE), placement.place_of(u64::MAX)), (None, None));
    assert_eq!((placement.frames(0), placement.frames(1)), (0..PAGE, 0..3 * PAGE));
    assert_eq!(
        placement.stats,
        PlacementStats { targets: vec![TargetStats::default(); 2], ..Default::default() }
    );
}
