use super::*;
use config::units::{Bytes, Duration, Share};
use engine::Rng;

/// A hundred lines of eight sectors, watermarks of FastDrain's Table I.
const CONTEXT: DestageContext = DestageContext { high: 80, low: 20, unit_sectors: 8 };

fn two_speed() -> Box<dyn Destage> {
    DestagePolicy::two_speed(two_speed::Params {
        at_once: Bytes::from_kib(1024),
        window: Duration::new(Time::ZERO),
        busy: Share::percent(10),
    })
    .build(&CONTEXT)
}

fn fill(dirty: u32, flushing: u32) -> Fill {
    Fill { dirty, flushing, pressed: false }
}

#[test]
fn the_family_keeps_its_contract() {
    config::policy::check_family::<DestagePolicy>().expect("the list is whole");
}

#[test]
fn use_to_come_is_what_is_here_and_what_is_announced_and_has_not_come() {
    let mut policy = two_speed();
    let now = Time::from_ms(1);
    assert_eq!(policy.pace(now, &fill(30, 0)), Some(Pace::Background));
    // 30 here and 50 to come are 80, which is not above the watermark; 51 are.
    policy.announced(now, 50 * 8);
    assert_eq!(policy.pace(now, &fill(30, 0)), Some(Pace::Background));
    policy.announced(now, 1);
    assert_eq!(policy.pace(now, &fill(30, 0)), Some(Pace::Foreground));
    // Goes on until 20 are left that nothing was done about, and no further.
    assert_eq!(policy.pace(now, &fill(21, 9)), Some(Pace::Foreground));
    assert_eq!(policy.pace(now, &fill(20, 10)), Some(Pace::Background));
    // 40 of the announced lines come: 20 + 40 here, 10 and a bit to come, no more than 80 although it is above 51.
    policy.came(40 * 8);
    assert_eq!(policy.pace(now, &fill(60, 0)), Some(Pace::Background));
    // Ten more come, and a sector is left, which takes a line: 79 here are not too much with it, 80 are.
    policy.came(10 * 8);
    assert_eq!(policy.pace(now, &fill(79, 0)), Some(Pace::Background));
    assert_eq!(policy.pace(now, &fill(80, 0)), Some(Pace::Foreground));
}

#[test]
fn what_was_announced_and_does_not_come_is_forgotten() {
    let mut policy = two_speed();
    let ms = Time::from_ms;
    assert_eq!(two_speed::EXPIRES, ms(5000));
    policy.announced(ms(1), 100 * 8);
    policy.announced(ms(5), 8);
    assert_eq!(policy.pace(ms(5000), &fill(21, 0)), Some(Pace::Foreground));
    assert_eq!(policy.pace(ms(5000), &fill(0, 21)), None);
    // The first has ended, and the second with one line has not: 79 and 1 are 80.
    assert_eq!(policy.pace(ms(5001), &fill(79, 0)), Some(Pace::Background));
    assert_eq!(policy.pace(ms(5004), &fill(80, 0)), Some(Pace::Foreground));
    assert_eq!(policy.pace(ms(5004), &fill(0, 80)), None);
    assert_eq!(policy.pace(ms(5005), &fill(80, 0)), Some(Pace::Background));
}

#[test]
fn full_is_told_from_above_high_until_low() {
    let mut policy = two_speed();
    let mut state = |dirty, flushing| {
        policy.pace(Time::ZERO, &fill(dirty, flushing));
        policy.state()
    };
    assert_eq!(state(80, 0), BufferState::Room);
    assert_eq!(state(20, 61), BufferState::Full);
    assert_eq!(state(20, 1), BufferState::Full);
    assert_eq!(state(20, 0), BufferState::Room);
    assert_eq!(state(79, 1), BufferState::Room);
    assert_eq!(state(81, 0), BufferState::Full);
}

#[test]
fn when_full_sends_nothing_before_there_is_no_room() {
    let mut policy = DestagePolicy::when_full.build(&DestageContext { high: 100, low: 96, unit_sectors: 8 });
    assert_eq!(policy.pace(Time::ZERO, &fill(100, 0)), None);
    let full = |dirty, flushing| Fill { dirty, flushing, pressed: true };
    // Four lines leave, and what finds no room does not wait for them to arrive before it asks for more.
    assert_eq!(policy.pace(Time::ZERO, &full(100, 0)), Some(Pace::Even));
    assert_eq!(policy.pace(Time::ZERO, &full(97, 3)), Some(Pace::Even));
    assert_eq!(policy.pace(Time::ZERO, &full(96, 4)), None);
    assert_eq!(policy.pace(Time::ZERO, &full(97, 3)), Some(Pace::Even));
    // From 50 % on: what is under way counts as used.
    let mut half = DestagePolicy::when_full.build(&DestageContext { high: 50, low: 50, unit_sectors: 8 });
    assert_eq!(half.pace(Time::ZERO, &fill(50, 0)), None);
    assert_eq!(half.pace(Time::ZERO, &fill(51, 0)), Some(Pace::Even));
    assert_eq!(half.pace(Time::ZERO, &fill(50, 1)), None);
}

#[test]
fn what_is_loaded_decides_like_what_was_saved() {
    for family in DestagePolicy::all_defaults() {
        let mut rng = Rng::stream(1, "test");
        let mut policy = family.build(&CONTEXT);
        for step in 0..2_000u64 {
            let now = Time::from_ms(step * 700);
            match rng.below(4) {
                0 => policy.announced(now, rng.below(300)),
                1 => policy.came(rng.below(200) as u32),
                _ => {}
            }
            let dirty = rng.below(101) as u32;
            let fill = Fill {
                dirty,
                flushing: rng.below(101 - u64::from(dirty)) as u32,
                pressed: rng.below(8) == 0,
            };
            let pace = policy.pace(now, &fill);
            assert_eq!(policy.pace(now, &fill), pace, "{}: asking changes nothing", family.name());
            let must = fill.pressed && fill.dirty > 0 && fill.flushing == 0 && !policy.is_off();
            assert!(!must || pace.is_some(), "{}: nothing would ever leave", family.name());
            assert!(pace != Some(Pace::Background) || policy.background().is_some());
            let mut bytes = Vec::new();
            policy.save(&mut bytes);
            let mut copy = family.build(&CONTEXT);
            assert_eq!(copy.load(&mut bytes.as_slice()), Some(()), "{}", family.name());
            assert_eq!((copy.pace(now, &fill), copy.state()), (pace, policy.state()), "{}", family.name());
            policy = copy;
        }
    }
}
