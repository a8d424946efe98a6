//! Every format says the same of the same kernels, recorded profiles give their published statistics, and what
//! cannot be read is refused in one diagnostic with its place. So are arbitrary bytes and damaged profiles.

#![allow(clippy::result_large_err, reason = "a diagnostic ends a test: its size costs nothing")]

use crate::support::{CHROME, KERNEL_CSV, NCU, NCU_RAW, NSYS, NSYS_KERNELS, gzip, read, recorded_as};
use config::Diagnostic;
use proptest::prelude::*;
use sampling::{Bound, Dims, Format, Kind, Plan, Profile, Rule, Selection};

fn kernels(profile: &Profile) -> Vec<(Kind, f64)> {
    let kinds = profile.kind_of().iter().map(|kind| profile.kinds()[*kind as usize].clone());
    // To a picosecond: microseconds of a file are not exact multiples of it in binary.
    kinds.zip(profile.durations_ns().iter().map(|ns| (ns * 1e3).round() / 1e3)).collect()
}

#[test]
fn all_formats_say_the_same() {
    let kind = |name: &str, grid: Option<[u32; 3]>| Kind {
        name: name.to_owned(),
        grid: grid.map(Dims),
        block: grid.map(|_| Dims([128, 1, 1])),
    };
    let expected = vec![
        (kind("void f<float, 2>(int)", Some([564, 1, 1])), 3136.0),
        (kind("gemm", Some([2, 3, 4])), 1500.0),
        (kind("from_a_graph", None), 0.0),
        (kind("void f<float, 2>(int)", Some([564, 1, 1])), 3200.0),
    ];
    for (format, text) in [
        (Format::KernelCsv, KERNEL_CSV),
        (Format::ChromeTrace, CHROME),
        (Format::NsysGpuTrace, NSYS),
        (Format::NsysKernelTrace, NSYS_KERNELS),
        (Format::NcuMetrics, NCU),
        (Format::NcuRaw, NCU_RAW),
    ] {
        for bytes in
            [text.as_bytes().to_vec(), gzip(text.as_bytes()), text.replace('\n', "\r\n").into_bytes()]
        {
            let profile = read(&bytes).unwrap_or_else(|fault| panic!("{format}: {fault}"));
            assert_eq!(profile.format(), format);
            assert_eq!(kernels(&profile), expected, "{format}");
        }
    }
    // The array of events alone, and rows in another order.
    let events = CHROME.split_once("\"traceEvents\": ").unwrap().1.rsplit_once(", \"traceName\"").unwrap().0;
    assert_eq!(kernels(&read(events).unwrap()), expected);
    let mut lines: Vec<&str> = KERNEL_CSV.lines().collect();
    lines[1..].reverse();
    assert_eq!(kernels(&read(lines.join("\n") + "\n").unwrap()), expected);
    let micros = NSYS.replace("(ns)", "(us)").replace(",3136,", ",3.136,").replace(",1500,", ",1.5,");
    assert_eq!(kernels(&read(micros.replace(",3200,", ",3.2,")).unwrap()), expected);
}

#[test]
fn remarks_say_what_is_not_usual() {
    let remarks = read(NSYS).unwrap().remarks().join("; ");
    for said in ["2 memory copies and fills", "1 kernels have no grid", "1 kernels have a duration of zero"] {
        assert!(remarks.contains(said), "{remarks}");
    }
    let cut = KERNEL_CSV.trim_end();
    assert!(read(cut).unwrap().remarks().join("; ").contains("no line feed"));
    let whole = KERNEL_CSV.replace("3.136", "3").replace("3.2", "3").replace("1.5", "1");
    assert!(read(whole).unwrap().remarks().join("; ").contains("whole microseconds"));
    assert!(read(NCU).unwrap().remarks().len() == 2);
}

/// Kernels, names, kinds, and the sum of durations in ms, as `shared/data/README.md` has them.
#[test]
fn recorded_profiles_have_their_published_statistics() {
    for (path, kernels, names, kinds, sum_ms) in [
        ("kernels_csv/bert-small_h100.kernels.csv.gz", 60, 11, 12, 0.3),
        ("kernels_csv/hta_trace_diff_control_a100.kernels.csv.gz", 8_568, 170, 539, 446.8),
        ("kernels_csv/hta_v100_ddp_train_19k.kernels.csv.gz", 19_370, 49, 290, 977.9),
        ("kernels_csv/linear_kineto.kernels.csv.gz", 8_716, 16, 21, 369.3),
        ("kernels_csv/megatron_kineto_0.kernels.csv.gz", 690, 40, 48, 372.6),
        ("kernels_csv/owlv2_mi300.kernels.csv.gz", 4_255, 52, 73, 327.4),
        ("kernels_csv/qwen1.5-0.5b_h100.kernels.csv.gz", 1_465, 26, 29, 45.4),
        ("kernels_csv/resnet50_v100_nw0_a.kernels.csv.gz", 8_772, 67, 208, 591.2),
        ("kernels_csv/sd3.5_mi300.kernels.csv.gz", 8_042, 126, 195, 712.0),
        ("raw/hta/hta_nccl_a100.json.gz", 2_700, 70, 193, 162.5),
        ("raw/kineto/resnet50_v100_nw0_a.pt.trace.json.gz", 8_772, 67, 208, 591.2),
        ("raw/tracelens/bert-small_h100.json.gz", 60, 11, 12, 0.3),
    ] {
        let Some(file) = recorded_as(path) else { return };
        let profile = Profile::read(&file).unwrap_or_else(|fault| panic!("{fault}"));
        let mut found: Vec<&str> = profile.kinds().iter().map(|kind| kind.name.as_str()).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!((profile.len(), found.len(), profile.kinds().len()), (kernels, names, kinds), "{path}");
        assert!((profile.total_ns() / 1e6 - sum_ms).abs() <= 0.051, "{path}: {}", profile.total_ns());
    }
}

/// The kernel CSVs were made from these traces by somebody else's program.
#[test]
fn a_trace_and_its_kernel_csv_are_one_profile() {
    for (json, csv) in [
        ("raw/tracelens/bert-small_h100.json.gz", "kernels_csv/bert-small_h100.kernels.csv.gz"),
        ("raw/kineto/resnet50_v100_nw0_a.pt.trace.json.gz", "kernels_csv/resnet50_v100_nw0_a.kernels.csv.gz"),
    ] {
        let (Some(json), Some(csv)) = (recorded_as(json), recorded_as(csv)) else { return };
        let [json, csv] =
            [json, csv].map(|path| Profile::read(&path).unwrap_or_else(|fault| panic!("{fault}")));
        assert!(kernels(&json) == kernels(&csv));
    }
}

fn refused(bytes: impl AsRef<[u8]>, said: &[&str], line: u64) -> Diagnostic {
    let shown = String::from_utf8_lossy(bytes.as_ref()).chars().take(200).collect::<String>();
    let fault = read(bytes).err().unwrap_or_else(|| panic!("was read: {shown}"));
    for said in said {
        assert!(fault.to_string().contains(said), "no `{said}` in {fault}");
    }
    assert_eq!(fault.place.as_ref().map_or(0, |place| place.line), line, "{fault}");
    fault
}

#[test]
fn bad_tables() {
    let csv = |from: &str, to: &str| {
        let changed = KERNEL_CSV.replacen(from, to, 1);
        assert_ne!(changed, KERNEL_CSV);
        changed
    };
    refused(csv("3.136", "-3.136"), &["negative", "-3136 ns", "test:2:9", "allowed: 0 to 1e15 ns"], 2);
    refused(csv(",1.5,", ",,"), &["the duration is missing"], 3);
    refused(csv(",1.5,", ",NaN,"), &["not a number"], 3);
    refused(csv(",1.5,", ",fast,"), &["the duration is not a number: `fast`"], 3);
    refused(csv(",1.5,", ",inf,"), &["eleven days"], 3);
    refused(csv("40.864", "soon"), &["the start is not a number: `soon`"], 3);
    refused(csv("2x3x4", "2x3"), &["the grid cannot be `2x3`", "564x1x1"], 3);
    refused(csv("2x3x4", "2x0x4"), &["the grid cannot be"], 3);
    refused(csv(",gemm", ","), &["the name of the kernel is missing"], 3);
    refused(csv(",gemm", ""), &["the row ends before the name of the kernel"], 3);
    refused(csv("dur_us", "duration"), &["has no column `dur_us`", "sampling needs the duration"], 1);
    refused(csv("start_us,dur_us,", ""), &["has no columns `start_us`, `dur_us`"], 1);
    refused(KERNEL_CSV.lines().next().unwrap(), &["no kernels in test"], 0);
    // Cut within the quotes of a name, where CSV readers see no fault.
    refused(&KERNEL_CSV[..KERNEL_CSV.len() - 8], &["truncated", "quotes"], 5);
    refused(NSYS.replacen("Duration (ns)", "Duration", 1), &["has no unit of time"], 4);
    refused(
        NSYS.replacen("Duration (ns)", "Duration (h)", 1),
        &["has no unit of time", "allowed: ns, us"],
        4,
    );
    refused(NSYS.replacen("GrdY", "Y", 1), &["has no column `GrdY`"], 4);
    refused(NSYS.replacen(",2,3,4,", ",2,,4,", 1), &["the grid cannot have a side of ``"], 7);
}

#[test]
fn bad_exports_of_nsight_compute() {
    refused(NCU.replacen("\"3,136\"", "\"3,13\"", 1), &["not a number: `3,13`", "LC_ALL=C"], 6);
    refused(NCU.replacen("\"nsecond\",\"3", "\"cycle\",\"3", 1), &["is `cycle`, not a unit of time"], 6);
    let without = NCU.replacen("gpu__time_duration.sum", "dram__bytes.sum", 1);
    refused(without, &["ID 1 (`gemm`) has no duration"], 8);
    refused(NCU.replacen("\"Grid Size\"", "\"Grid\"", 1), &["has no column `Grid Size`"], 4);
    refused(NCU_RAW.replacen("\"usecond\"", "\"\"", 1), &["not a unit of time"], 3);
    refused(
        NCU_RAW.replacen("gpu__time_duration.sum", "gpu__time.max", 1),
        &["has no column `gpu__time_dur"],
        2,
    );
    refused(NCU_RAW.replacen("\"1.50\"", "\"-1.50\"", 1), &["negative"], 5);
}

#[test]
fn bad_traces() {
    let json = |from: &str, to: &str| CHROME.replacen(from, to, 1);
    refused(json("3.136", "-3.136"), &["kernel 0 (`void f<float, 2>(int)`)", "negative"], 5);
    refused(json(", \"dur\": 1.5", ""), &["kernel 2 (`gemm`) has no duration (`dur`)"], 9);
    refused(json("1.5", "\"1.5\""), &["duration (`dur`) is not a number"], 9);
    refused(json("1.5", "NaN"), &["not JSON"], 8);
    refused(json("[2, 3, 4]", "[2, 3.5, 4]"), &["its grid is not three whole numbers"], 9);
    refused(json("[2, 3, 4]", "\"2x3x4\""), &["its grid is not three whole numbers"], 9);
    refused(json("\"name\": \"gemm\", ", ""), &["kernel 2 has no name"], 9);
    refused(json("traceEvents", "events"), &["has no `traceEvents`", "export_chrome_trace"], 0);
    refused(r#"{"traceEvents": []}"#, &["no kernels in test"], 0);
    refused(r#"{"traceEvents": {}}"#, &["an array of events"], 1);
    refused(format!("{CHROME}]"), &["not JSON", "trailing"], 13);
    for cut in [5, 100, 500, CHROME.len() - 3] {
        let fault = read(&CHROME[..cut]).unwrap_err();
        assert!(fault.what.contains("the JSON is truncated") && fault.place.is_some(), "{fault}");
    }
}

#[test]
fn bad_files() {
    for text in [KERNEL_CSV, CHROME, NCU] {
        let packed = gzip(text.as_bytes());
        refused(&packed[..packed.len() / 2], &["truncated", "gzip"], 0);
        let mut damaged = packed.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 8].fill(0xff);
        let fault = read(damaged).unwrap_err();
        assert!(fault.help.is_some(), "{fault}");
    }
    refused("", &["empty"], 0);
    refused("\n \n", &["empty"], 0);
    let other =
        "kernel_name,problem_size,iterations,avg_ms,min_ms,max_ms\nvectoradd,1024,51,0.0046,0.0042,0.0117\n";
    refused(other, &["not a known profile", "allowed: kernel CSV", "ncu --csv"], 1);
    refused([0_u8, 159, 146, 150, b'\n'], &["not a known profile"], 1);
    let fault = Profile::read(std::path::Path::new("no/such/file.json")).unwrap_err();
    assert!(fault.what.contains("cannot read no/such/file.json") && fault.help.is_some(), "{fault}");
}

/// Every kernel is in one group, of its kind and in its range, and every group is sampled.
fn is_partition(profile: &Profile, plan: &Plan) {
    let mut times = vec![0; profile.len()];
    for group in plan.groups() {
        assert!((1..=group.count()).contains(&group.samples()));
        let (min, max) = group.range_ns();
        for kernel in plan.kernels_of(group) {
            let kernel = *kernel as usize;
            times[kernel] += 1;
            assert_eq!(profile.kind_of()[kernel] as usize, group.kind());
            assert!((min..=max).contains(&profile.durations_ns()[kernel]));
        }
    }
    assert!(times.iter().all(|times| *times == 1));
}

/// A profile that can be read can be sampled, and the selection reads back.
fn survives(bytes: &[u8]) {
    let Ok(profile) = read(bytes) else { return };
    assert!(!profile.is_empty() && profile.total_ns().is_finite());
    for rule in Rule::ALL {
        let plan = Plan::new(&profile, Bound::new(0.05, 0.95).unwrap(), rule).unwrap();
        is_partition(&profile, &plan);
        let sample = plan.draw(1);
        let prediction = sample.predict(&plan, |kernel| profile.durations_ns()[kernel as usize]);
        assert!(prediction.total_ns().is_finite() && prediction.half_width_ns().is_finite());
        let selection = Selection::new(&plan, &sample, "p", 1);
        assert_eq!(Selection::from_toml("t", &selection.to_toml()).unwrap(), selection);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survives(&bytes);
        survives(&gzip(&bytes));
        let _ = Selection::from_toml("t", &String::from_utf8_lossy(&bytes));
    }

    /// Kernels of a program: few kinds, any durations.
    #[test]
    fn any_kernels(kernels in proptest::collection::vec((0_u8..4, prop_oneof![0.0..1e15, 0.0..9.0, Just(0.0)]), 1..200)) {
        let mut profile = Profile::default();
        for (name, ns) in kernels {
            profile.push(&name.to_string(), None, None, ns).unwrap();
        }
        for rule in Rule::ALL {
            for error in [0.001, 0.05, 0.9] {
                is_partition(&profile, &Plan::new(&profile, Bound::new(error, 0.95).unwrap(), rule).unwrap());
            }
            let samples = |error| Plan::new(&profile, Bound::new(error, 0.95).unwrap(), rule).unwrap().samples();
            prop_assert!(samples(0.05) <= samples(0.01), "a wider bound needs no more kernels");
        }
    }

    #[test]
    fn any_lines_behind_a_header(which in 0_usize..5, lines in "([0-9a-z.,\"x() -]{0,40}\n){0,12}") {
        let good = [KERNEL_CSV, NSYS, NSYS_KERNELS, NCU, NCU_RAW][which];
        let header = good.lines().position(|line| line.contains("ame") && line.contains(',') && !line.contains("hello"));
        let until: usize = good.split_inclusive('\n').take(header.unwrap() + 1).map(str::len).sum();
        survives((good[..until].to_owned() + &lines).as_bytes());
    }

    #[test]
    fn damaged_profiles(
        which in 0_usize..6,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        packed in any::<bool>(),
    ) {
        let mut bytes = [KERNEL_CSV, CHROME, NSYS, NSYS_KERNELS, NCU, NCU_RAW][which].as_bytes().to_vec();
        for (place, byte) in damage {
            // Printable more often than not: binary data is refused at once.
            let at = place.index(bytes.len());
            bytes[at] = if byte < 200 { b' ' + byte % 95 } else { byte };
        }
        survives(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        survives(&if packed { gzip(&bytes) } else { bytes });
    }
}
