//! Places of pages.

use super::*;
use config::policy::check_family;
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

// Valid and refused specs.

fn error(pages: &[u64], policy: PlacementPolicy) -> SpecError {
    spec(pages, policy).check().expect_err("cannot be built")
}

fn granule(bytes: u64) -> PlacementPolicy {
    PlacementPolicy::interleave(interleave::Params { granule: Bytes::new(bytes) })
}

fn hot(change: impl Fn(&mut hot_policy::Params)) -> PlacementPolicy {
    let mut params = eager();
    change(&mut params);
    PlacementPolicy::hot(params)
}

#[test]
fn the_family_is_in_order_and_each_policy_can_be_built() {
    assert_eq!(check_family::<PlacementPolicy>(), Ok(()));
    for policy in PlacementPolicy::all_defaults() {
        let placement = Placement::new(&spec(&[4, 8], policy), LINE).expect("can be built");
        assert_eq!((placement.targets(), placement.frames(0)), (2, 0..0));
    }
}

#[test]
fn sizes_are_whole_pages_and_not_too_many() {
    let any = PlacementPolicy::ranges;
    let key = |pages: &[u64]| error(pages, any.clone()).key;
    assert_eq!([key(&[]), key(&[4, 0]), key(&[1; 256]), key(&[1 << 30, 1 << 30, 1])], ["sizes"; 4]);
    let mut odd = spec(&[4], any.clone());
    odd.sizes[0] = Bytes::new(PAGE + 512);
    assert!(
        odd.check().expect_err("no whole page").what.contains("4608B is not a multiple of the page size")
    );
    assert_eq!(spec(&[1 << 30, 1 << 30], any).check(), Ok(()));
    for line in [0, 32, 1024] {
        let built = Placement::new(&spec(&[4], PlacementPolicy::first_touch), line);
        assert_eq!(built.err().map(|error| error.key), Some("line".to_owned()));
    }
}

#[test]
fn a_policy_says_what_does_not_fit() {
    let keys =
        [granule(PAGE / 2), granule(3 * PAGE), granule(4 * PAGE)].map(|policy| error(&[8, 6], policy).key);
    assert_eq!(keys, ["policy.interleave.granule"; 3]);
    assert_eq!(spec(&[8, 6], granule(2 * PAGE)).check(), Ok(()));
    let of = |change: fn(&mut hot_policy::Params)| error(&[8, 8], hot(change)).key;
    assert_eq!(of(|params| params.scan = ns(0)), "policy.hot.scan");
    assert_eq!(of(|params| params.exchanges = 0), "policy.hot.exchanges");
    // A window has room for a page.
    let tight = |bytes: u64| hot(|params| params.rate = Bandwidth::new(bytes));
    assert_eq!(error(&[8, 8], tight(PAGE * 100_000 - 1)).key, "policy.hot.rate");
    assert_eq!(spec(&[8, 8], tight(PAGE * 100_000)).check(), Ok(()));
}

#[test]
fn the_schema_has_the_limits_of_policies() {
    let params = config::schema::params(&config::schema::of::<PlacementSpec>(), "").expect("no prefix");
    let allowed = |key: &str| {
        let param = params.iter().find(|param| param.key == key);
        param.unwrap_or_else(|| panic!("no {key}")).allowed.clone()
    };
    assert_eq!(allowed("policy.interleave.granule"), "4KiB to 1GiB, a power of two");
    assert_eq!(allowed("policy.hot.exchanges"), "1 to 65536");
    assert_eq!(["policy.hot.scan", "policy.hot.window"].map(allowed), ["1us to 1h"; 2]);
}

/// As a user writes it, but for what the machine takes out before.
#[test]
fn a_spec_reads_as_it_is_documented() {
    let read = super::read_spec::<PlacementSpec>;
    let text = "sizes = [\"16KiB\", \"32KiB\"]\nlatency = \"20ns\"\n";
    let expected =
        spec(&[4, 8], hot(|params| *params = hot_policy::Params { exchanges: 2, ..Default::default() }));
    assert_eq!(read(&format!("{text}policy = {{ hot = {{ exchanges = 2 }} }}")), Ok(expected));
    assert_eq!(
        read(&format!("{text}policy = \"first_touch\"")),
        Ok(spec(&[4, 8], PlacementPolicy::first_touch))
    );
    for wrong in [
        "policy = \"nearest\"",
        "policy = \"hot\"\nlines = 3",
        "policy = { ranges = { granule = \"4KiB\" } }",
    ] {
        assert!(read(&format!("{text}{wrong}")).is_err(), "{wrong}");
    }
}

#[test]
fn what_does_not_fit_is_a_hole() {
    for policy in PlacementPolicy::all_defaults() {
        let build = || Placement::new(&spec(&[4, 8], policy.clone()), LINE).expect("can be built");
        assert_eq!(build().set_extent(11 * PAGE, 12 * PAGE), Ok(()));
        let error = build().set_extent(11 * PAGE, 12 * PAGE + 1).expect_err("a byte too many");
        assert_eq!(error.key, "sizes");
        assert_eq!(
            error.what,
            "data and page tables take 49153B, but the memories have only 48KiB together: a placement with a hole"
        );
    }
}
