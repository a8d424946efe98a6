use super::*;
use proptest::prelude::*;

const US: Time = Time::from_us(1);
const NANOJOULE: Attojoules = 1_000_000_000;
const ACTIVITIES: [Activity; 3] =
    [Activity::state("idle"), Activity::operation("read"), Activity::operation("write")];

fn meter(width: Time, limit: usize) -> Meter {
    Meter::with_windows(&ACTIVITIES, Time::ZERO, width, limit)
}

fn nanojoules(meter: &Meter) -> Vec<u128> {
    meter.windows().1.iter().map(|spent| spent / NANOJOULE).collect()
}

#[test]
fn operations_and_states_add_up() {
    let mut meter = meter(US, 8);
    // A watt for 2.5 us is 2.5 uJ.
    meter.set_power(0, Time::ZERO, 1_000_000);
    meter.spend(1, Time::from_ns(1_200), 40 * NANOJOULE);
    meter.set_power(0, Time::from_ns(2_500), 0);
    meter.advance(Time::from_us(4));
    assert_eq!(meter.spent(), [2_500 * NANOJOULE, 40 * NANOJOULE, 0]);
    assert_eq!(nanojoules(&meter)[..3], [1_000, 1_040, 500]);
}

/// 70 nJ over 3.5 us are 20 nJ a microsecond.
#[test]
fn an_operation_is_spread_over_its_time() {
    let mut meter = meter(US, 8);
    meter.spread(1, Time::from_ns(500), Time::from_us(4), 70 * NANOJOULE);
    assert_eq!(nanojoules(&meter), [10, 20, 20, 20]);
    // Seven attojoules over three windows leave no remainder.
    meter.spread(2, Time::ZERO, US.times(3), 7);
    assert!(meter.conserves());
    assert_eq!(meter.spent(), [0, 70 * NANOJOULE, 7]);
    let added: Vec<u128> = meter.windows().1.iter().map(|spent| spent % NANOJOULE).collect();
    assert_eq!(added, [2, 2, 3, 0]);
}

#[test]
fn a_measured_window_begins_with_the_states_as_they_are() {
    let mut meter = meter(US, 8);
    meter.set_power(0, Time::ZERO, 3_000_000);
    meter.advance(US.times(5));
    meter.reset(US.times(5));
    // What began before, and ends now, counts as a whole; in the first windows.
    meter.spread(1, US.times(3), US.times(7), 8 * NANOJOULE);
    meter.advance(US.times(7));
    assert_eq!(meter.spent(), [6_000 * NANOJOULE, 8 * NANOJOULE, 0]);
    assert_eq!(nanojoules(&meter), [3_004, 3_004]);
}

/// Two watts for 3 us, and 3 uJ in the second of them: 9 uJ in 3 us, 5 W at the most.
#[test]
fn a_report_has_energies_and_powers() {
    let mut meter = meter(US, 8);
    meter.set_power(0, Time::ZERO, 2_000_000);
    meter.spend(1, Time::from_ns(1_500), 3_000 * NANOJOULE);
    let report = meter.report(US.times(3));
    assert!(report.conserves());
    assert_eq!(report.total(), 9_000 * NANOJOULE);
    assert_eq!((report.series.mean_w(), report.series.peak_w()), (3.0, 5.0));
    // The meter itself has not moved.
    assert_eq!(meter.spent()[0], 0);
}

proptest! {
    /// Whatever happens, and however often windows double: both accounts have what was spent.
    #[test]
    fn windows_and_activities_agree(
        events in prop::collection::vec((0_usize..3, 0_u64..5_000_000, 0_u64..2_000_000, 0_u8..3), 1..60),
    ) {
        let mut meter = meter(Time::from_ns(10), 16);
        let (mut now, mut expected, mut powers) = (0, 0_u128, [0_u64; 3]);
        for (activity, step, amount, kind) in events {
            expected += powers.iter().map(|power| u128::from(*power) * u128::from(step)).sum::<u128>();
            let before = now;
            now += step;
            match kind {
                0 => {
                    meter.set_power(activity, Time::from_ps(now), amount);
                    powers[activity] = amount;
                }
                1 => meter.spend(activity, Time::from_ps(now), amount.into()),
                _ => meter.spread(activity, Time::from_ps(before), Time::from_ps(now), amount.into()),
            }
            expected += if kind == 0 { 0 } else { u128::from(amount) };
        }
        meter.advance(Time::from_ps(now));
        prop_assert_eq!(meter.spent().iter().sum::<u128>(), expected);
        prop_assert_eq!(meter.windows().1.iter().sum::<u128>(), expected);
        prop_assert!(meter.windows().1.len() <= 16);
        let report = meter.report(Time::from_ps(now));
        prop_assert!(report.conserves() && report.total() == expected);
    }
}

/// As much as a spec can make of it: a joule for each nanosecond of a day.
#[test]
fn nothing_is_too_large_to_be_spread() {
    let mut meter = meter(US, 8);
    let (day, energy) = (Time::from_ms(86_400_000), 86_400_000_000_000 * 1_000_000_000_000_000_000);
    meter.spread(1, Time::ZERO, day, energy);
    assert!(meter.conserves());
    assert_eq!(meter.spent()[1], energy);
}

proptest! {
    /// Changes of a state within one window, one by one and as what they come to.
    #[test]
    fn what_has_passed_is_what_its_changes_come_to(
        begins in 0u64..20_000_000,
        steps in prop::collection::vec((1u64..300_000, 0u64..5_000_000), 1..12),
        after in 1u64..9_000_000,
    ) {
        let ps = Time::from_ps;
        let (mut each, mut whole) = (meter(US, 64), meter(US, 64));
        for meter in [&mut each, &mut whole] {
            meter.set_power(0, Time::ZERO, 7_000);
            meter.spend(1, ps(begins / 2), 11);
        }
        let (mut at, mut energy, mut power) = (begins, 0, 7_000);
        for (wait, next) in &steps {
            energy += u128::from(*wait) * u128::from(power);
            at += wait;
            each.set_power(0, ps(at), *next);
            power = *next;
        }
        each.set_power(0, ps(at), 7_000);
        if whole.is_one_window(ps(begins), ps(at)) {
            whole.passed(0, ps(begins), ps(at), energy);
        } else {
            // What lies in several windows is none.
            prop_assert!(begins / US.ps() != (at - 1) / US.ps());
            return Ok(());
        }
        let end = ps(at + after);
        prop_assert_eq!(each.report(end), whole.report(end));
    }
}
