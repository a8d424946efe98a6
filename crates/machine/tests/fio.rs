//! fio's options in a run: what is inert is listed in the result, what is unsupported is refused by name.

use machine::run::{Plan, run_alone};
use workload::fio::{Class, options};

fn plan(job: &str) -> Plan {
    Plan::new("d16", job).set("precondition=none")
}

#[test]
fn every_inert_option_is_listed_in_the_result_and_changes_nothing() {
    let plain = "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=200";
    let inert: Vec<&str> = options().filter(|row| row.class == Class::Inert).map(|row| row.name).collect();
    assert!(inert.len() > 100);
    let all = inert.iter().fold(plain.to_owned(), |job, name| format!("{job},{name}=1"));
    let with = run_alone(&plan(&all)).unwrap_or_else(|fault| panic!("{fault}"));
    let without = run_alone(&plan(plain)).unwrap_or_else(|fault| panic!("{fault}"));
    for name in inert {
        let said = format!("`{name}` changes nothing here: ");
        assert!(with.warnings.iter().any(|warning| warning.contains(&said)), "{name}");
    }
    assert!(!without.warnings.iter().any(|warning| warning.contains("changes nothing here")));
    let io = |document| serde_json::to_value(document).expect("a document has a JSON form");
    assert_eq!(io(&with.io), io(&without.io));
}

#[test]
fn every_unsupported_option_is_refused_by_name() {
    for row in options().filter(|row| row.class == Class::Unsupported) {
        let job = format!("fio:rw=randread,bs=4k,{}=7", row.name);
        let fault = run_alone(&plan(&job)).map(|_| ()).expect_err(row.name);
        assert!(fault.what.contains(row.name) && fault.what.contains(row.doc), "{fault}");
        assert_eq!(fault.place.as_ref().map(|place| place.source.as_str()), Some("--workload"), "{fault}");
    }
}
