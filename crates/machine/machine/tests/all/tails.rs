//! What the result of a server says about its own figures: intervals, warm-up, too few jobs, saturation.

use machine::Warmup;
use machine::result::{CpuResult, Document};
use machine::run::{Plan, run_alone};

/// Mean service in nanoseconds: 2,000 instructions of one cycle at 2 GHz.
const SERVICE: f64 = 1000.0;

/// Jobs of exponential length on four cores with DRAM.
fn plan(jobs: u64) -> Plan {
    let sets = ["cpu.cores=4", "fabric.mesh.rows=2", "fabric.mesh.columns=2", "l2.banks=4"];
    let plan = sets.iter().fold(Plan::new("dram-only", "exponential:mean=2000"), |plan, set| plan.set(set));
    plan.set(&format!("cpu.load.jobs={jobs}"))
}

/// Plan with random arrivals at a given load of each core.
fn loaded(jobs: u64, load: f64, seed: u64) -> Plan {
    let interval = SERVICE / load;
    let mut plan = plan(jobs).set(&format!("cpu.load.arrivals.poisson.interval={interval:.0}ns"));
    plan.seed = seed;
    plan
}

fn run(plan: &Plan) -> Document {
    let document = run_alone(plan).expect("it runs");
    assert!(document.ok, "{:?}", document.checks);
    document
}

fn cpu(document: &Document) -> &CpuResult {
    document.cpu.first().expect("a server")
}

/// The warning that has these words.
fn warning<'a>(document: &'a Document, words: &str) -> Option<&'a str> {
    document.warnings.iter().map(String::as_str).find(|warning| warning.contains(words))
}

#[test]
fn a_load_above_saturation_is_said_and_one_below_is_not() {
    for seed in 1..=6 {
        for jobs in [4_000, 8_000] {
            let below = run(&loaded(jobs, 0.9, seed));
            assert_eq!(warning(&below, "saturation"), None, "seed {seed}");
            // From an empty machine queues grow most.
            let whole = run(&loaded(jobs, 0.9, seed).set("cpu.warmup.fixed.jobs=0"));
            assert_eq!(warning(&whole, "saturation"), None, "seed {seed}");
            let above = run(&loaded(jobs, 1.2, seed));
            let said =
                warning(&above, "above saturation").unwrap_or_else(|| panic!("seed {seed}, {jobs} jobs"));
            let found = cpu(&above);
            assert!(said.contains(&format!("{:.0} jobs/s completed", found.throughput_per_s)), "{said}");
            // Four cores do 4 jobs a microsecond, and 4.8 come; five standard errors of half the jobs.
            let scatter = 5.0 / (jobs as f64 / 2.0).sqrt();
            let [offered, ended] = [found.offered_per_s.expect("open"), found.throughput_per_s];
            assert!((offered / 4.8e6 - 1.0).abs() < scatter && (ended / 4e6 - 1.0).abs() < scatter, "{said}");
            assert!(found.waiting_jobs.expect("open") > jobs / 8, "{said}");
        }
    }
}

#[test]
fn jobs_that_nobody_can_serve_take_no_memory() {
    // A thousand jobs come while a core does one: two billion wait at the end.
    let document = run(&loaded(2_000_000, 1000.0, 1).set("cpu.warmup.fixed.jobs=0"));
    let waiting = cpu(&document).waiting_jobs.expect("open") as f64;
    assert!((waiting / (999.0 * 2e6) - 1.0).abs() < 0.01, "{waiting}");
    assert!(warning(&document, "above saturation").is_some());
}

#[test]
fn a_percentile_on_too_few_jobs_is_said_with_what_would_do() {
    let words = "99th percentile of service";
    for (jobs, said) in [(600, "no 99th percentile of"), (5_000, "too few for a confidence interval")] {
        let short = run(&plan(jobs));
        let text = warning(&short, words).expect("a warning");
        assert!(text.contains(said), "{text}");
        let needed = text.split("cpu.load.jobs=").nth(1).and_then(|rest| rest.split(',').next());
        let longer: u64 = needed.and_then(|n| n.parse().ok()).expect("a number of jobs");
        // The proposed number of jobs suffices, if as many are cut.
        let cut = format!("cpu.warmup.fixed.jobs={}", cpu(&short).warmup.jobs);
        let enough = run(&plan(longer).set(&cut));
        assert_eq!(warning(&enough, said), None, "{:?}", enough.warnings);
    }
    // A queue at 95 % load remembers hundreds of jobs: ten thousand say little of its tail.
    let wide = run(&loaded(14_000, 0.95, 1));
    let (p99, width) =
        (cpu(&wide).latency_ns.p99.expect("jobs"), cpu(&wide).latency_ci95_ns.p99.expect("batches"));
    assert!(width > 0.1 * p99, "{width} {p99}");
    assert!(warning(&wide, "the 99th percentile of latency is known to +-").is_some(), "{:?}", wide.warnings);
}

#[test]
fn intervals_hold_the_true_figures() {
    let document = run(&plan(60_000));
    let (figures, widths) = (cpu(&document).service_ns, cpu(&document).service_ci95_ns);
    // Exponential service. Three half widths are more than six standard errors.
    for (estimate, width, expected) in [
        (figures.mean, widths.mean, 1.0),
        (figures.p50, widths.p50, std::f64::consts::LN_2),
        (figures.p90, widths.p90, std::f64::consts::LN_10),
        (figures.p99, widths.p99, 2.0 * std::f64::consts::LN_10),
    ] {
        let (estimate, width) = (estimate.expect("jobs") / SERVICE, width.expect("batches") / SERVICE);
        assert!((estimate - expected).abs() < 3.0 * width, "{estimate} +- {width} for {expected}");
        assert!(width < 0.06 * expected, "{width} for {expected}");
    }
    assert_eq!((widths.p99_9, warning(&document, "percentile")), (None, None));
}

#[test]
fn the_result_says_what_was_cut_and_how() {
    let of = |plan: &Plan| {
        let document = run(plan);
        let warmup = cpu(&document).warmup.clone();
        assert_eq!(warmup.jobs + cpu(&document).jobs, 6_000);
        (warmup.method, warmup.jobs, warmup.detected)
    };
    let (method, jobs, detected) = of(&plan(6_000));
    // Exponential jobs are steady from the first.
    assert_eq!((method, detected), ("detected", Some(true)));
    assert!((600..1_200).contains(&jobs), "{jobs}");
    // A core runs ahead: at most a few jobs end in one event.
    let (method, jobs, detected) = of(&plan(6_000).set("cpu.warmup.fixed.jobs=700"));
    assert!(method == "fixed" && (700..704).contains(&jobs) && detected.is_none(), "{jobs}");
    assert_eq!(of(&plan(6_000).set("cpu.warmup.fixed.jobs=0")), ("none", 0, None));
    let mut given = plan(6_000);
    given.warmup = Some(Warmup::Until(engine::Time::from_us(300)));
    assert_eq!(of(&given).0, "time");
}

#[test]
fn what_is_not_steady_is_cut_at_the_half_and_said() {
    let document = run(&loaded(8_000, 1.5, 1));
    let warmup = &cpu(&document).warmup;
    assert_eq!((warmup.method, warmup.detected), ("detected", Some(false)));
    assert!((4_000..4_004).contains(&warmup.jobs), "{}", warmup.jobs);
    assert!(warning(&document, "no steady state within the first").is_some(), "{:?}", document.warnings);
    // A warm-up that never ends.
    let mut endless = plan(1_000);
    endless.warmup = Some(Warmup::Requests(5_000));
    let document = run_alone(&endless).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!((cpu(&document).warmup.method, cpu(&document).jobs), ("none", 1_000));
    assert!(warning(&document, "during its warm-up").is_some(), "{:?}", document.warnings);
    let failed: Vec<&str> = document.checks.iter().filter(|c| !c.ok).map(|c| c.name.as_str()).collect();
    assert_eq!((document.ok, failed), (false, vec!["the warm-up leaves something to measure"]));
}
