//! Every quantity reads what it writes, refuses what it cannot hold, and says what it would have taken.

use config::diag::Diagnostic;
use config::units::{Bandwidth, Bytes, Duration, Energy, Frequency, Power, Share, TransferRate};
use engine::Time;
use proptest::prelude::*;
use serde::Deserialize;

fn fault<T: std::str::FromStr<Err = Diagnostic> + std::fmt::Debug>(text: &str) -> String {
    text.parse::<T>().expect_err(text).to_string()
}

#[test]
fn amounts_are_those_of_the_unit() {
    let ps = |text: &str| text.parse::<Duration>().unwrap().time();
    assert_eq!(ps("65us"), Time::from_us(65));
    assert_eq!(ps("65 us"), Time::from_us(65));
    assert_eq!(ps("65µs"), Time::from_us(65));
    assert_eq!(ps("1.5ns"), Time::from_ps(1_500));
    assert_eq!(ps("0.001ns"), Time::from_ps(1));
    assert_eq!(ps("1.50000000000000000000000000000000000000000ns"), Time::from_ps(1_500));
    assert_eq!(ps("30d"), Time::from_s(30 * 86_400));
    assert_eq!(ps("0ns"), Time::ZERO);
    let bytes = |text: &str| text.parse::<Bytes>().unwrap().get();
    assert_eq!(bytes("4KiB"), 4096);
    assert_eq!(bytes("4kB"), 4000);
    assert_eq!(bytes("1.5MiB"), 3 << 19);
    assert_eq!(bytes("1TB"), 1_000_000_000_000);
    let rate = |text: &str| text.parse::<Bandwidth>().unwrap().bytes_per_s();
    assert_eq!(rate("3.2GB/s"), 3_200_000_000);
    assert_eq!(rate("4GiB/s"), 4 << 30);
    assert_eq!(rate("1Gbit/s"), 125_000_000);
    assert_eq!("800MT/s".parse::<TransferRate>().unwrap().per_s(), 800_000_000);
    assert_eq!("1.2GHz".parse::<Frequency>().unwrap().hz(), 1_200_000_000);
    let attojoules = |text: &str| text.parse::<Energy>().unwrap().attojoules();
    assert_eq!((attojoules("0.8pJ"), attojoules("50uJ")), (800_000, 50_000_000_000_000));
    assert_eq!("0.17W".parse::<Power>().unwrap().microwatts(), 170_000);
}

#[test]
fn the_shortest_exact_text_is_written() {
    let duration = |ps| Duration::new(Time::from_ps(ps)).to_string();
    assert_eq!(duration(54_920_000), "54.92us");
    assert_eq!(duration(54_920_001), "54920001ps");
    assert_eq!(duration(500_000), "500ns");
    assert_eq!(duration(0), "0ps");
    assert_eq!(Bytes::new(16_384).to_string(), "16KiB");
    assert_eq!(Bytes::new(1_000_000_000_000).to_string(), "1TB");
    assert_eq!(Bytes::new(512).to_string(), "512B");
    assert_eq!(Bytes::from_kib(6 << 20).to_string(), "6GiB");
    assert_eq!(Share::percent(7).to_string(), "0.07");
}

#[test]
fn what_is_no_amount_is_refused_and_the_reason_given() {
    let cases = [
        ("65", "has no unit"),
        ("0", "has no unit"),
        ("-65us", "is negative"),
        ("-0us", "is negative"),
        ("", "does not begin with a number"),
        ("us", "does not begin with a number"),
        (".5us", "does not begin with a number"),
        ("5.us", "does not begin with a number"),
        ("1.2.3us", "does not begin with a number"),
        ("+5us", "does not begin with a number"),
        ("nan", "does not begin with a number"),
        ("infs", "does not begin with a number"),
        ("1e3us", "`e3us` in `1e3us` is not a unit of a duration"),
        ("65KiB", "`65KiB` is a size, not a duration"),
        ("1.2GHz", "`1.2GHz` is a frequency, not a duration"),
        ("65uss", "did you mean `us`?"),
        ("65US", "did you mean `us`?"),
        ("0.5ps", "not a whole multiple of 1ps"),
        ("1.0005ns", "not a whole multiple of 1ps"),
        ("0.00000000000000000000000000000000000000001s", "not a whole multiple of 1ps"),
        ("18446745s", "too large for a duration"),
        ("99999999999999999999999999999999999999999ps", "too large for a duration"),
    ];
    for (text, reason) in cases {
        let shown = fault::<Duration>(text);
        assert!(shown.contains(reason), "{text}: {shown}");
    }
    assert!(fault::<Duration>("65KiB").contains("allowed: ps, ns, us, ms, s, min, h, d"));
    assert!(fault::<Bytes>("0.5B").contains("not a whole multiple of 1B"));
    assert!(fault::<Bytes>("16K").contains("did you mean"));
    assert!(fault::<Bytes>("4GB/s").contains("is a bandwidth, not a size"));
    assert!(fault::<Bandwidth>("4gb/s").contains("did you mean `GB/s`?"));
    assert!(fault::<Bandwidth>("1bit/s").contains("not a whole multiple of 1B/s"));
    assert!(fault::<Bandwidth>("800MT/s").contains("is a transfer rate, not a bandwidth"));
    assert!(fault::<TransferRate>("800MHz").contains("is a frequency, not a transfer rate"));
    assert!(fault::<Energy>("3W").contains("is a power, not an energy"));
}

/// A unit that is one letter away may differ by 10^12 in size: a unit is suggested only if no other is as near.
#[test]
fn a_suggested_unit_is_of_the_size_that_was_meant() {
    for (text, unit) in [
        ("5sec", "s"),
        ("5 seconds", "s"),
        ("5S", "s"),
        ("5usec", "us"),
        ("5 milliseconds", "ms"),
        ("5MS", "ms"),
        ("5hours", "h"),
        ("5mins", "min"),
        ("65uss", "us"),
    ] {
        let shown = fault::<Duration>(text);
        assert!(shown.contains(&format!("did you mean `{unit}`?")), "{text}: {shown}");
    }
    for text in ["5ss", "5hs", "5as", "5fs", "5m", "5M", "5 x"] {
        let shown = fault::<Duration>(text);
        assert!(!shown.contains("did you mean"), "{text}: {shown}");
    }
    // Mega differs from milli, and peta from pico.
    for shown in [fault::<Power>("5MW"), fault::<Energy>("5MJ"), fault::<Energy>("5PJ")] {
        assert!(!shown.contains("did you mean"), "{shown}");
    }
    assert!(fault::<Power>("5KW").contains("did you mean `kW`?"));
    assert!(fault::<Bytes>("16K").contains("did you mean `kB`?"));
}

#[test]
fn a_share_is_a_real_number_or_per_cent() {
    let share = |text: &str| text.parse::<Share>().unwrap().get();
    // Per cent mean the same real number as the decimal fraction, to the last bit.
    for (percent, fraction) in
        [("7%", 0.07), ("0.1%", 0.001), ("12.5 %", 0.125), ("28.7%", 0.287), ("100%", 1.0)]
    {
        assert_eq!(share(percent), fraction, "{percent}");
        assert_eq!(share(percent), share(&Share::new(fraction).unwrap().to_string()));
    }
    assert_eq!(share("0.07"), 0.07);
    assert_eq!(share("0"), 0.0);
    for text in ["101%", "1.01", "-1%", "-0.1", "nan", "inf", "", "%", "1e-2", "7 percent", "0.5.5"] {
        assert!(fault::<Share>(text).contains("is not a share"), "{text}");
    }
    assert!(fault::<Share>("7").contains("may mean per cent"));
    assert!(Share::new(f64::NAN).is_err() && Share::new(1.5).is_err());
    // 0.29 * 100 is 28.999999999999996 in binary.
    assert_eq!(Share::percent(29).of(100), 29);
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Amounts {
    #[serde(default)]
    time: Duration,
    #[serde(default)]
    share: Share,
}

#[test]
fn serde_takes_text_and_refuses_bare_numbers() {
    let read = |text: &str| toml::from_str::<Amounts>(text);
    assert_eq!(read("time = '65us'").unwrap().time, Duration::new(Time::from_us(65)));
    for text in ["time = 65", "time = 0", "time = 6.5", "time = '65'"] {
        let shown = read(text).unwrap_err().to_string();
        assert!(shown.contains("has no unit") && shown.contains("65us"), "{text}: {shown}");
    }
    assert!(read("time = true").unwrap_err().to_string().contains("a duration such as"));
    assert_eq!(read("share = 0.07").unwrap().share, read("share = '7%'").unwrap().share);
    assert_eq!(read("share = 0").unwrap().share, Share::ZERO);
    for text in ["share = 1", "share = nan", "share = -0.1", "share = 'x'"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn the_schema_knows_the_units() {
    let schema = schemars::schema_for!(Duration).to_value();
    assert_eq!(schema["type"], "string");
    assert_eq!(schema["x-quantity"], "duration");
    assert_eq!(schema["examples"][0], "65us");
    assert!(schema["pattern"].as_str().unwrap().contains("|us|"));
    assert!(schema["description"].as_str().unwrap().contains("ps, ns, us"));
}

/// Checks that text and serde both return the written amount.
fn round_trips<T>(value: T)
where
    T: std::str::FromStr<Err = Diagnostic> + std::fmt::Display + std::fmt::Debug + PartialEq,
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    assert_eq!(value.to_string().parse::<T>().unwrap(), value);
    let json = serde_json::to_string(&value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&json).unwrap(), value, "{json}");
}

/// Generates round and ragged amounts of every magnitude.
fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u32..64).prop_map(|shift| 1 << shift),
        (1u64..2000, 0u32..16).prop_map(|(digits, zeros)| digits * 10u64.pow(zeros)),
        (1u64..2000, 0u32..50).prop_map(|(digits, shift)| digits << shift),
    ]
}

proptest! {
    #[test]
    fn what_is_written_reads_back(amount in amount()) {
        round_trips(Duration::new(Time::from_ps(amount)));
        round_trips(Bytes::new(amount));
        round_trips(Bandwidth::new(amount));
        round_trips(TransferRate::new(amount));
        round_trips(Frequency::new(amount));
        round_trips(Energy::new(amount));
        round_trips(Power::new(amount));
    }

    #[test]
    fn a_share_reads_back(share in 0.0..=1.0f64) {
        round_trips(Share::new(share).unwrap());
    }

    /// Decimals against integer arithmetic: `whole.fraction` us is `whole * 10^6 + fraction` ps with six decimals.
    #[test]
    fn decimals_are_exact(whole in 0u64..1_000_000, fraction in 0u64..1_000_000) {
        let text = format!("{whole}.{fraction:06}us");
        prop_assert_eq!(text.parse::<Duration>().unwrap().time().ps(), whole * 1_000_000 + fraction);
    }

    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = (text.parse::<Duration>(), text.parse::<Bytes>(), text.parse::<Bandwidth>(), text.parse::<Share>());
    }

    #[test]
    fn no_near_miss_panics(text in "[0-9.%-]{0,40} ?[kKMGTiBbps/µu]{0,5}") {
        let _ = (text.parse::<Duration>(), text.parse::<Bytes>(), text.parse::<Bandwidth>(), text.parse::<Share>());
    }
}
