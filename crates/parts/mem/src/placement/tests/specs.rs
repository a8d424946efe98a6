//! What can be built, and what not.

use super::*;
use config::policy::check_family;

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
    assert!(odd.check().expect_err("no whole page").what.contains("4608B is not a number of whole pages"));
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
            "data and page tables of 49153B in memories of 48KiB together: a placement with a hole"
        );
    }
}
