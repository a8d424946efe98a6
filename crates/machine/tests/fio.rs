//! fio's options in a run: what is inert is listed in the result, what is unsupported is refused by name.

use machine::run::{Plan, run_alone};
use machine::workloads::{self, Opened, WorkloadOptions};
use workload::fio::{Class, options};
use workload::trace::TraceOptions;

fn plan(job: &str) -> Plan {
    Plan::new("d16", job).set("flash.precondition=none")
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

/// What is likely not meant reaches the user, once for all clones of a job.
#[test]
fn what_a_job_will_not_do_is_said() {
    let options = WorkloadOptions {
        trace: TraceOptions::default(),
        queue_depth: None,
        capacity: 16 << 20,
        file_bytes: Ok(0),
        kernel: None,
        seed: 1,
    };
    let said = |job: &str| {
        let Ok(Opened::Requests(opened)) = workloads::open(job, &options) else { panic!("a good job") };
        opened.warnings.join("; ")
    };
    // A pass over 1 MiB has 256 blocks of 4 KiB.
    for rw in ["write", "randwrite", "randread", "randrw"] {
        let short = said(&format!("fio:rw={rw},bs=4k,size=1m,number_ios=257"));
        assert!(
            short.contains("257 requests are asked for") && short.contains("at most 256 requests"),
            "{rw}: {short}"
        );
        assert_eq!(said(&format!("fio:rw={rw},bs=4k,size=1m,number_ios=256")), "");
    }
    let clones = said("fio:rw=randwrite,bs=4k,size=1m,loops=3,numjobs=3");
    assert_eq!(clones.matches("each pass repeats the first block by block").count(), 1, "{clones}");
    assert!(
        clones.contains("write amplification stays near 1") && clones.contains("randrepeat=0"),
        "{clones}"
    );
    let reads = said("fio:rw=randread,bs=4k,size=1m,loops=3");
    assert!(reads.contains("each pass repeats") && !reads.contains("amplification"), "{reads}");
    for fresh in ["randrepeat=0", "randseed=7", "norandommap=1,randrepeat=0"] {
        assert_eq!(said(&format!("fio:rw=randwrite,bs=4k,size=1m,loops=3,{fresh}")), "", "{fresh}");
    }
    // In order, passes are the same by definition.
    assert_eq!(said("fio:rw=write,bs=4k,size=1m,loops=3"), "");
}
