use super::Sharing;
use engine::Time;

const SECOND: Time = Time::from_ms(1_000);

/// When sections are over, by core, of those that begin at these times with these times alone and bytes.
fn run(bandwidth: u64, jobs: &[(Time, Time, u64)]) -> Vec<Time> {
    let mut sharing = Sharing::new(jobs.len() as u16, bandwidth);
    let mut over = vec![Time::ZERO; jobs.len()];
    let mut begun = 0;
    loop {
        let next = sharing.ends_at().min_by_key(|(_, at)| *at);
        let begins = jobs.get(begun).map(|(at, _, _)| *at);
        match (next, begins) {
            (None, None) => return over,
            (Some((core, at)), begins) if begins.is_none_or(|begins| at <= begins) => {
                assert!(sharing.ends(at, core));
                over[core] = at;
            }
            _ => {
                let (at, alone, bytes) = jobs[begun];
                sharing.begin(at, begun, alone, bytes);
                begun += 1;
            }
        }
    }
}

fn near(found: Time, expected: f64) {
    assert!((found.ps() as f64 / 1e12 - expected).abs() < 1e-6, "{found} for {expected} s");
}

/// By hand: three cores ask for 2, 4 and 10 bytes a second of 12. The first gets 2, the others 5 each: the second its 4, so that 6 are left for the third, which computes at 0.6 of its speed until the
/// others end after a second; then it has 10, and needs 0.4 s more.
#[test]
fn nobody_gets_more_than_a_share_that_others_want() {
    let over = run(12, &[(Time::ZERO, SECOND, 2), (Time::ZERO, SECOND, 4), (Time::ZERO, SECOND, 10)]);
    near(over[0], 1.0);
    near(over[1], 1.0);
    near(over[2], 1.4);
}

/// Two of 8 bytes a second share 10: each computes at 5/8. The second begins after half a second, in which the first had all it wants.
#[test]
fn who_comes_slows_down_those_who_are_there() {
    let over = run(10, &[(Time::ZERO, SECOND, 8), (Time::from_ms(500), SECOND, 8)]);
    // The first has half left, at 5/8: 0.8 s. The second has 0.5 left then.
    near(over[0], 1.3);
    near(over[1], 1.8);
}

/// A long section does not keep a short one waiting that begins behind it.
#[test]
fn a_short_section_waits_for_no_long_one() {
    let over = run(1_000, &[(Time::ZERO, SECOND.times(100), 15_000), (Time::ZERO, Time::from_ms(100), 10)]);
    near(over[0], 100.0);
    near(over[1], 0.1);
}

/// One that asks for more than there is takes as long as its bytes need.
#[test]
fn nobody_is_faster_than_memory() {
    near(run(10, &[(Time::ZERO, SECOND, 50)])[0], 5.0);
    near(run(10, &[(Time::ZERO, Time::ZERO, 0)])[0], 1e-12);
}

/// What flash brings goes first: 5 of 10 bytes a second for a second, and one core wants all 10.
#[test]
fn what_is_carried_for_flash_goes_first() {
    let mut sharing = Sharing::new(1, 10);
    sharing.begin(Time::ZERO, 0, SECOND, 10);
    sharing.carry(5);
    assert!(!sharing.ends(SECOND, 0));
    let ends: Vec<_> = sharing.ends_at().collect();
    near(ends[0].1, 1.5);
    assert!(sharing.ends(ends[0].1, 0));
    // More than there is for everybody waits for the next second.
    sharing.begin(ends[0].1, 0, SECOND, 10);
    sharing.carry(20);
    assert!(!sharing.ends(ends[0].1 + SECOND, 0));
    near(sharing.ends_at().next().unwrap().1, 3.5);
}
