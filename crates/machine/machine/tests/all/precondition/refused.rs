//! What cannot be done is refused, with the arithmetic.

use crate::precondition::bench::small;
use machine::precondition;

/// The refusal of a state: what, and help.
fn refused(overrides: &[&str], state: &str) -> (String, String) {
    let system = small(overrides);
    let mut device = system.device(1).expect("a device");
    let parsed = precondition::parse(state).unwrap_or_else(|fault| panic!("{fault}"));
    match precondition::apply(&parsed, system.drive().expect("a drive").flash, &mut device.ftl, 1) {
        Ok(report) => panic!("{state} was accepted: {report:?}"),
        Err(fault) => (fault.what.clone(), fault.help.unwrap_or_default()),
    }
}

#[test]
fn shares_that_are_nothing_or_more_than_all() {
    for state in ["sequential", "uniform", "zipf", "steady", "analytic"] {
        let (what, help) = refused(&[], &format!("{state}:share=0%"));
        assert_eq!(what, "a share of 0.0 of 111411 map units is none at all", "{state}");
        assert!(help.contains("none"));
        // 4e-6 of 111 411 units rounds to none.
        assert!(refused(&[], &format!("{state}:share=0.0004%")).0.contains("none at all"));
        let over = precondition::parse(&format!("{state}:share=101%")).expect_err("more than all");
        assert!(over.to_string().contains("101%"), "{over}");
    }
}

#[test]
fn invalid_shares_that_need_more_than_there_is() {
    // 89 129 units; 8 groups of 251 blocks of 64 units and one unit: 128 520. At most 30.64 %.
    let (what, help) = refused(&[], "uniform:share=80%,invalid=31%");
    for part in [
        "0.31 asks for 129172",
        "89129 valid ones over 0.69",
        "8 groups hold 128520",
        "251 of 256",
        "4 kept free",
    ] {
        assert!(what.contains(part), "{part}: {what}");
    }
    assert!(help.contains("at most 30.64 %"), "{help}");
    assert!(refused(&[], "uniform:share=80%,invalid=100%").0.contains("1.0 asks for inf"));
    let (device, report) =
        crate::precondition::bench::prepared(&small(&[]), "uniform:share=80%,invalid=30.64%", 1);
    // Up to one unit in each die beyond it, so that its planes are in step: 4 of 128 520.
    let above = report.invalid_share - 0.3064;
    assert!(above > -1e-5 && above < 1e-5 + 4.0 / 128_520.0 && device.ftl.counters.erases == 0);
}

#[test]
fn a_device_without_spare_space() {
    // 250 blocks of 64 units beside 4 free ones and 2 frontiers, and all of them logical: 16 000 of 16 384.
    let none: &[&str] = &["flash.ftl.over_provisioning=2.34375%"];
    for state in ["steady", "zipf", "analytic", "steady:distribution=zipf"] {
        let (what, _) = refused(none, state);
        for part in [
            "256 reclaim units of 64",
            "4 are kept free and 2 are frontiers",
            "250 hold 16000",
            "16000 are mapped",
        ] {
            assert!(what.contains(part), "{state}, {part}: {what}");
        }
    }
    // A device that does not need to reclaim can be full.
    crate::precondition::bench::prepared(&small(none), "uniform", 1);
}

#[test]
fn parameters_without_a_meaning() {
    assert!(refused(&[], "steady:tolerance=0%").0.contains("never steady to within 0 %"));
    for theta in ["0.0", "-1.0", "51.0", "nan", "inf"] {
        assert!(refused(&[], &format!("zipf:theta={theta}")).0.contains("does not lie above 0"), "{theta}");
        let nested = format!("steady:distribution.zipf.theta={theta}");
        assert!(refused(&[], &nested).0.contains("does not lie above 0"), "{theta}");
    }
    for writes in ["0.0", "-2.0", "1001.0", "nan"] {
        assert!(refused(&[], &format!("zipf:writes={writes}")).0.contains("drive writes"), "{writes}");
    }
}

#[test]
fn steady_states_without_a_theory() {
    for victim in ["cost_benefit", "windowed_greedy"] {
        let (what, help) = refused(&[&format!("flash.ftl.gc.victim={victim}")], "analytic");
        assert!(what.contains(victim) && help.contains("steady"), "{what}");
    }
    let one_shot = [
        "flash.cell.bits=3",
        "flash.cell.programming=one_shot",
        "flash.geometry.page_size=16KiB",
        "flash.geometry.pages=24",
    ];
    let (what, _) = refused(&one_shot, "analytic:share=50%");
    // Program units of 12 in blocks of 96: 5.5 / 96 = 5.7 %.
    assert!(what.contains("(12 - 1) / 2 of the 96 units") && what.contains("5.7 %"), "{what}");
}

#[test]
fn traces_that_do_not_fit_or_are_not_there() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    // The last unit is number 111,410.
    std::fs::write(file.path(), format!("0 0 0 40 0\n1 0 {} 16 0\n", 111_410 * 8)).expect("written");
    let state = |more: &str| format!("trace:file={},format=mqsim,remap=error{more}", file.path().display());
    let (what, _) = refused(&[], &state(""));
    assert!(what.contains("device"), "{what}");
    let (what, help) = refused(&[], &state(",passes=0"));
    assert!(what.contains("0 passes") && help.contains("1000"), "{what}");
    let (what, help) = refused(&[], "trace");
    assert!(what.contains("names no trace") && help.contains("file"), "{what}");
    let (what, _) = refused(&[], "trace:file=no-such-file.trace");
    assert!(what.contains("cannot read the trace"), "{what}");
}

#[test]
#[should_panic(expected = "from an empty device")]
fn a_device_that_was_used() {
    let system = small(&[]);
    let (mut device, _) = crate::precondition::bench::prepared(&system, "sequential", 1);
    let state = precondition::parse("sequential").expect("a state");
    let _ = precondition::apply(&state, system.drive().expect("a drive").flash, &mut device.ftl, 1);
}
