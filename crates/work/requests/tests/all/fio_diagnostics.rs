//! Every class of error and warning, and that no text makes the reader panic.

#![allow(clippy::result_large_err, reason = "diagnostics are made once")]

use std::path::Path;

use crate::fio_common::CAPACITY;
use config::Diagnostic;
use proptest::prelude::*;
use proto::file::Way;
use requests::fio::{Class, Jobs, Notes, fuzz_one, option, options, parse_file, parse_inline, parse_text};

fn error(text: &str) -> Diagnostic {
    match parse_inline(text).and_then(|jobs| jobs.resolve(CAPACITY).map(|_| ())) {
        Ok(()) => panic!("{text} is accepted"),
        Err(error) => error,
    }
}

fn file_error(text: &str) -> Diagnostic {
    parse_text("bad.fio", text).map(|_| ()).expect_err(text)
}

fn notes(text: &str) -> Notes {
    parse_inline(text).unwrap_or_else(|error| panic!("{text}: {error}")).notes
}

#[test]
fn an_unknown_option_names_the_nearest() {
    for (text, nearest) in [
        ("fio:rw=read,iodept=4", "iodepth"),
        ("fio:rw=read,time_base", "time_based"),
        ("fio:blocksze=4k", "blocksize"),
        ("fio:runtim=3", "runtime"),
        ("fio:group_report", "group_reporting"),
        ("fio:norandom_map", "norandommap"),
    ] {
        let error = error(text);
        assert_eq!(error.nearest.as_deref(), Some(nearest), "{error}");
        assert!(error.what.contains("no option"), "{error}");
    }
    assert_eq!(error("fio:qqqqqqqqq=1").nearest, None);
}

#[test]
fn a_wrong_value_names_the_option_and_what_is_allowed() {
    for (text, what, nearest) in [
        ("rw=randreed", "rw=randreed", Some("randread")),
        ("ioengine=libaoi", "ioengine=libaoi", Some("libaio")),
        ("rate_process=poison", "rate_process=poison", Some("poisson")),
        ("random_distribution=zipff:1.2", "random_distribution=zipff:1.2", Some("zipf")),
        ("rw_sequencer=sequental", "rw_sequencer=sequental", Some("sequential")),
        ("bs=4q", "bs=4q", None),
        ("iodepth=0", "out of range", None),
        ("rwmixread=101", "out of range", None),
        ("time_based=yes", "not a boolean", None),
        ("size=0%", "percentage", None),
        ("size=101%", "percentage", None),
        ("runtime=5 minutes", "not a time", None),
        ("bs=", "needs a value", None),
        ("size=", "not a number of bytes", None),
        ("bs", "needs a value", None),
        ("bs=4k,8k,16k,32k", "three parts", None),
        ("bsrange=4k", "not a range", Some("bsrange=4k-4k")),
        ("bsrange=4k,64k", "not a range", Some("bsrange=4k-64k")),
        ("bs=4k-64k", "a range", Some("bsrange=4k-64k")),
        ("bs=4k/60:8k/40", "a split", Some("bssplit=4k/60:8k/40")),
        ("size=1.5g", "not a number of bytes", Some("1536m")),
        ("size=0.5m", "not a number of bytes", Some("512k")),
        ("bs=4 KB", "not a number of bytes", Some("4k")),
        ("size=1_000_000", "not a number of bytes", Some("1000000")),
        ("size=2 gigabytes", "not a number of bytes", Some("2g")),
        ("size=4kx", "not a number of bytes", Some("4k")),
        ("size=50 %", "percentage", Some("50%")),
        ("offset=101%", "percentage", None),
        ("bssplit=4k/60:8k/50", "add up", None),
        ("rw=trimwrite:4", "no number after a colon", None),
        ("rw=randread:0", "out of range", None),
        ("random_distribution=zipf:0", "out of range", None),
        ("random_distribution=pareto:1.5", "out of range", None),
        ("random_distribution=normal:100", "out of range", None),
        ("random_distribution=zipf:1.2:2", "out of range", None),
        ("size=${NANDSCAPE_NOT_SET}", "`NANDSCAPE_NOT_SET`", None),
        ("iodepth=$ncpus", "variable", None),
        ("size=(1024*4)", "expression", None),
    ] {
        let error = error(text);
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!(error.nearest.as_deref(), nearest, "{text}: {error}");
    }
}

#[test]
fn unsupported_options_say_why_and_their_neutral_values_pass() {
    for row in options().filter(|row| row.class == Class::Unsupported) {
        for name in std::iter::once(row.name).chain(row.alias) {
            let error = error(&format!("{name}=7"));
            assert!(error.what.contains(row.doc) && error.what.contains(row.name), "{error}");
        }
    }
    for text in ["verify=0", "serialize_overlap=0", "zonemode=none", "io_submit_mode=inline"] {
        assert_eq!(notes(text).inert.len(), 1, "{text}");
    }
    for text in [
        "verify=crc32c",
        "buffered=2",
        "io_submit_mode=offload",
        "filename=/dev/a:b",
        "filename=a:/dev/b",
        "ioengine=rbd",
        "direct=2",
    ] {
        let error = error(text);
        assert!(error.what.starts_with(text), "{error}");
    }
}

#[test]
fn inert_options_are_listed_with_the_reason() {
    for row in options().filter(|row| row.class == Class::Inert) {
        let text = format!("rw=read,{}=1", row.name);
        let inert = notes(&text).inert;
        assert_eq!(inert.len(), 1, "{text}");
        assert_eq!((inert[0].option.as_str(), inert[0].value.as_str()), (row.name, "1"));
        assert_eq!(inert[0].reason, row.doc);
    }
    let inert = notes("fio:group_reporting,cpus_allowed=0,2,4-6,filename=/dev/nvme0n1,rw=read").inert;
    let shown: Vec<_> = inert.iter().map(|i| (i.option.as_str(), i.value.as_str())).collect();
    assert_eq!(shown, [("group_reporting", ""), ("cpus_allowed", "0,2,4-6"), ("filename", "/dev/nvme0n1")]);
}

#[test]
fn contradictions_are_errors() {
    for (text, what) in [
        ("rate=1m,rate_iops=100", "exclude each other"),
        ("time_based", "needs a runtime"),
        ("bsrange=4k-8k,bssplit=4k/50:8k/50", "exclude each other"),
    ] {
        assert!(error(text).what.contains(what), "{text}");
    }
}

#[test]
fn what_does_not_fit_the_device_is_said_with_the_arithmetic() {
    let fits = error("offset=60m,size=8m").to_string();
    assert!(fits.contains("62914560 + size 8388608 = 71303168") && fits.contains("67108864"), "{fits}");
    assert!(fits.contains("size can be at most 4194304"), "{fits}");
    for (text, what) in [
        ("offset=64m", "is beyond the end of the device"),
        ("offset_increment=40m,numjobs=3,size=1m", "clone 2"),
        ("bs=1000", "a multiple of the sector"),
        ("offset=1000", "a multiple of the sector"),
        ("rw=randread,ba=1000", "a multiple of the sector"),
        ("rw=randread,bs=4k,1000,bs_is_seq_rand=1", "a multiple of the sector"),
        ("rw=read:1000", "a multiple of the sector"),
        ("size=2k", "too small"),
        ("rw=read:128m", "leave the region"),
        ("rw=randread,random_distribution=zoned_abs:50/40m:50/40m", "zones reach"),
        ("rw=randread,size=64k,random_distribution=zoned:50/1:50/99", "has no block"),
        ("startdelay=200d,runtime=100d", "beyond the limit"),
    ] {
        let error = error(text);
        assert!(error.what.contains(what), "{text}: {error}");
    }
    let many = parse_text("t", "[a]\nnumjobs=40000\n[b]\nnumjobs=40000").unwrap().resolve(CAPACITY);
    assert!(many.unwrap_err().what.contains("80000"));
}

#[test]
fn what_is_likely_not_meant_is_a_warning() {
    let warned = |text: &str| {
        let jobs = parse_inline(text).unwrap();
        let groups = jobs.resolve(CAPACITY).unwrap();
        let mut all = jobs.notes.warnings.clone();
        all.extend(groups.iter().flat_map(|g| &g.jobs).flat_map(|job| job.warnings.clone()));
        all
    };
    for (text, what) in [
        ("rw=randread,number_ios=20000", "at most 16384 requests"),
        ("rw=read,norandommap", "norandommap has no effect"),
        ("rw=read,rwmixread=70", "rwmixread has no effect"),
        ("rw=read,fsync=8", "fsync has no effect"),
        ("runtime=1,time_based,number_ios=9", "number_ios has no effect"),
        ("rw=randwrite,size=1m,loops=2", "each pass repeats"),
        ("rw=randread,bs=4k,ba=8k", "random map off"),
        ("ioengine=psync,iodepth=4", "one request at a time"),
        ("rw=randread,bssplit=4k/50:6k/50", "rounded down"),
        ("size=64KiB", "1000 bytes"),
        ("direct=0,iodepth=4", "which the kernel serves as they are submitted"),
        ("bsrange=4k-8k,bs=16k", "bs has no effect"),
    ] {
        let warnings = warned(text);
        assert!(warnings.len() == 1 && warnings[0].contains(what), "{text}: {warnings:?}");
    }
    let quiet = "fio:rw=randread,bs=4k,iodepth=64,number_ios=1000,direct=1";
    assert!(warned(quiet).is_empty());
}

#[test]
fn inline_commas_belong_to_the_value_they_follow() {
    let job = |text: &str| parse_inline(text).unwrap().jobs.remove(0);
    assert_eq!(job("bs=4k,64k,iodepth=8,rw=randrw").bs, [4096, 65_536, 65_536]);
    assert_eq!(job("bs=4k,64k,,rw=randrw").bs, [4096, 65_536, 4096]);
    assert_eq!(job("rate=,500k,time_based,runtime=1").rate, [0, 512_000, 512_000]);
    assert!(job("rate=,500k,time_based,runtime=1").time_based);
    assert_eq!(job("fio:bssplit=4k/50:8k/50,16k/100,iodepth=2").iodepth, 2);
    assert!(error("iodepth=4,8").what.contains("no option `8`"));
    assert!(error("rw=read,,bs=4k").what.contains("between two commas"));
    assert!(error("fio:").what.contains("empty"));
    let place = error("fio:rw=read,iodept=4").place.unwrap();
    assert_eq!((place.source.as_str(), place.column, place.key.as_str()), ("--workload", 13, "iodept"));
}

#[test]
fn job_files_are_read_section_by_section() {
    let text = "; a remark\n[global]\nbs=8k ; half a page\ngtod_reduce=1\n\n# another\n[one]\nrw = randread\n\
                [global]\niodepth=4\n[two]\nbs=16k#odd\n\tsize=1m\n[three]\n";
    let jobs = parse_text("a.fio", text).unwrap();
    let of = |jobs: &Jobs, i: usize| (jobs.jobs[i].name.clone(), jobs.jobs[i].bs[0], jobs.jobs[i].iodepth);
    assert_eq!(of(&jobs, 0), ("one".into(), 8192, 1));
    assert_eq!(of(&jobs, 1), ("two".into(), 16_384, 4));
    assert_eq!(of(&jobs, 2), ("three".into(), 8192, 4));
    assert!(jobs.jobs[0].rw.random && !jobs.jobs[1].rw.random);
    assert_eq!(jobs.notes.inert.len(), 1);
    assert_eq!(jobs.notes.inert[0].job, "global");
    // kb_base applies to its whole section, wherever it is.
    let jobs = parse_text("a.fio", "[x]\nsize=64k\nkb_base=1000\n").unwrap();
    assert_eq!(jobs.jobs[0].size, Some(requests::fio::Quantity::Bytes(64_000)));
}

#[test]
fn bad_job_files_say_where() {
    for (text, what, line) in [
        ("bs=4k\n[a]\n", "before the first", 1),
        ("[a]\ninclude b.fio\n", "include", 2),
        ("[a]\n\nbs=4q\n", "bs=4q", 3),
        ("[a]\nsize=1m\nverify=md5\n", "verify=md5", 3),
        ("[a\n", "section title", 1),
        ("[globals]\n", "reads [globals] as [global]", 1),
        ("[a]\nrate=1m\n[b]\nrate_iops=9\nrate=2m\n", "exclude each other", 4),
    ] {
        let error = file_error(text);
        assert!(error.what.contains(what), "{error}");
        assert_eq!(
            error.place.as_ref().map(|p| (p.source.as_str(), p.line)),
            Some(("bad.fio", line)),
            "{error}"
        );
    }
    assert!(file_error("[global]\nbs=4k\n").what.contains("has no job"));
    assert!(file_error("").what.contains("has no job"));
    // An inherited value from [global] that does not fit is shown at its place.
    let jobs = parse_text("g.fio", "[global]\nsize=1g\nfilename=/dev/x\n[a]\n").unwrap();
    assert_eq!(jobs.resolve(CAPACITY).unwrap_err().place.unwrap().line, 2);
}

/// The default of `direct` in fio is 0.
#[test]
fn a_file_that_leaves_out_direct_is_told_so() {
    let said = |text: &str| parse_text("d.fio", text).unwrap().notes.warnings.join("\n");
    let both = said("[global]\nsize=1m\n[a]\n[b]\ndirect=1\n[c]\n");
    for part in ["`a`, `c`", "page cache", "direct=0", "direct=1"] {
        assert!(both.contains(part), "{part}: {both}");
    }
    assert!(!both.contains("`b`"), "{both}");
    assert!(said("[a]\n[b]\n[c]\n[d]\n[e]\n[f]\n").contains("`d` and 2 more leave"));
    for text in ["[a]\ndirect=1\n", "[a]\nbuffered=0\n", "[a]\ndirect=0\n", "[a]\nioengine=io_uring_cmd\n"] {
        assert_eq!(said(text), "", "{text}");
    }
    assert_eq!(notes("fio:rw=read").warnings, Vec::<String>::new());
}

/// Engines that reach a drive through a different driver and have additional options.
#[test]
fn drivers_in_user_space_stand_for_passthrough() {
    for engine in [
        "spdk",
        "spdk_bdev",
        "xnvme",
        "libblkio",
        "external:/opt/spdk/build/fio/spdk_nvme",
        "/usr/lib/fio_plugin",
    ] {
        let jobs =
            parse_inline(&format!("fio:ioengine={engine},iodepth=8,spdk_json_conf=x,shm_id=1")).unwrap();
        let job = jobs.jobs[0].resolve(CAPACITY).unwrap();
        assert!(job.depth == 8 && !job.flushes.blocking, "{engine}");
        let inert: Vec<_> = jobs.notes.inert.iter().map(|inert| inert.option.as_str()).collect();
        assert_eq!(inert[0], "ioengine", "{engine}");
    }
    assert!(notes("fio:ioengine=io_uring_cmd").inert.is_empty());
}

/// `offset=0%` is the start; `bsrange` takes its ranges by slashes as well (fio's HOWTO, "irange").
#[test]
fn values_that_fio_takes_are_taken() {
    let job = parse_inline("fio:offset=0%,offset_increment=0%,bsrange=1k-4k/8k-32k").unwrap().jobs.remove(0);
    assert_eq!(job.resolve(CAPACITY).unwrap().start, 0);
    assert_eq!(job.bsrange[..2], [Some((1024, 4096)), Some((8192, 32_768))]);
}

#[test]
fn files_are_read_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.fio");
    std::fs::write(&path, "\u{feff}[a]\r\nrw=write\r\nbs=8k\r\n").unwrap();
    let jobs = parse_file(&path).unwrap();
    assert_eq!((jobs.jobs[0].name.as_str(), jobs.jobs[0].bs[0]), ("a", 8192));
    std::fs::write(&path, [0x5b, 0xff, 0x5d]).unwrap();
    assert!(parse_file(&path).unwrap_err().what.contains("UTF-8"));
    assert!(parse_file(Path::new("/nonexistent/a.fio")).unwrap_err().what.contains("cannot read"));
}

#[test]
fn aliases_are_the_same_option() {
    for (alias, name) in
        [("blocksize", "bs"), ("readwrite", "rw"), ("io_limit", "io_size"), ("timeout", "runtime")]
    {
        assert_eq!(option(alias).map(|row| row.name), Some(name));
    }
    let job = |text: &str| parse_inline(text).unwrap().resolve(CAPACITY).unwrap();
    assert_eq!(job("readwrite=randwrite,blocksize=8k,io_limit=1m"), job("rw=randwrite,bs=8k,io_size=1m"));
}

/// Jobs of both kinds, with every kind of value.
const JOBS: [&str; 6] = [
    "fio:rw=randrw,rwmixread=70,bs=4k,8k,iodepth=16,number_ios=100",
    "rw=randwrite,bssplit=4k/60:8k/40,random_distribution=zipf:1.1,size=50%,rate_iops=1000,time_based,runtime=1",
    "rw=rw:4k,bsrange=512-64k,thinktime=10us,fsync=8,offset=1m,io_size=2m,loops=2",
    "[global]\nbs=4k\n[a]\nrw=randread\nnumjobs=3\n[b]\nstonewall\nrw=write\nsize=1m\n",
    "; remark\n[a]\nrw=randread:8\nrandom_distribution=zoned:50/5:50/95\nrate=1m,2m\nrate_process=poisson\n",
    "[a]\nrw=trim\nbs=64k\noffset=50%\noffset_increment=1m\nstartdelay=1\nramp_time=2s\n",
];

/// Words that make random text look like a job.
fn piece() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = options().map(|row| row.name).collect();
    let values = [
        "4k",
        "0",
        "1",
        "100%",
        "randrw:3",
        "rw:-8k",
        "read:4k",
        "zipf:1.2:0.5",
        "zoned:50/10:50/",
        "normal:20",
        "4k/50:8k/",
        ",8k,",
        "1s",
        "10us",
        "99999999999999999999",
        "0x10",
        "poisson",
        "io_uring",
        "1k-64k",
        "pareto:0.3",
        "zoned_abs:100/1m",
        "18446744073709551615",
        "-1",
        "",
    ];
    let value = prop::sample::select(values.to_vec());
    (prop::sample::select(names), value, any::<bool>())
        .prop_map(|(name, value, flag)| if flag { format!("{name}={value}") } else { name.to_owned() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,80}", capacity: u64) {
        for jobs in [parse_inline(&text), parse_text("p.fio", &text)].into_iter().flatten() {
            let _ = jobs.resolve(capacity);
        }
    }

    /// Reads a valid job with a few bytes changed, cut off somewhere, or followed by anything.
    #[test]
    fn no_damaged_job_panics(
        choice: u8,
        job in prop::sample::select(JOBS.to_vec()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        tail in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut bytes = vec![choice];
        bytes.extend(job.as_bytes());
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if choice & 2 != 0 {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes.extend(tail);
        fuzz_one(&bytes);
    }

    #[test]
    fn no_job_makes_the_generator_panic(
        pieces in prop::collection::vec(piece(), 1..6),
        capacity in 0u64..1 << 22,
        file: bool,
    ) {
        let jobs = if file {
            parse_text("p.fio", &format!("[job]\n{}\n", pieces.join("\n")))
        } else {
            parse_inline(&pieces.join(","))
        };
        let Ok(jobs) = jobs else { return Ok(()) };
        let Ok(groups) = jobs.resolve(capacity) else { return Ok(()) };
        for job in groups.into_iter().flat_map(|group| group.jobs).take(2) {
            let (start, end) = (job.start, job.start + job.bytes);
            let run = crate::fio_common::drive_some(job, 1, 2000);
            for request in run.data() {
                prop_assert!(request.bytes > 0 && (request.offset | request.bytes) % 512 == 0);
                prop_assert!(request.offset >= start && request.offset + request.bytes <= end);
                prop_assert!(end <= capacity);
            }
        }
    }
}

/// If direct requests go through a host's kernel, it limits the engines; otherwise, any engine goes straight to the
/// drive.
#[test]
fn ways_through_a_kernel_are_those_that_it_has() {
    let ways = |text: &str, kernel| {
        let ways = parse_inline(&format!("fio:rw=randwrite,bs=4k,{text}")).expect(text).ways(kernel);
        ways.map(|ways| ways.map(|ways| ways.into_iter().map(|(way, _)| way).collect::<Vec<_>>()))
    };
    for (text, way) in [
        ("direct=0,ioengine=libaio", Way::Buffered),
        ("direct=1,ioengine=psync,hipri=1", Way::Direct),
        ("direct=1", Way::Aio),
        ("direct=1,ioengine=libaio,fsync=4", Way::Aio),
        ("direct=1,ioengine=io_uring,fsync=4", Way::Uring),
        ("direct=1,ioengine=io_uring,hipri=1,sync=dsync", Way::Polled),
    ] {
        assert_eq!(ways(text, true), Ok(Some(vec![way])), "{text}");
    }
    assert_eq!(ways("direct=1,ioengine=posixaio", false), Ok(None));
    assert_eq!(ways("ioengine=posixaio", true), Ok(None), "without `direct`");
    for (text, what) in [
        ("direct=1,ioengine=posixaio", "does not have this ioengine"),
        ("direct=1,ioengine=io_uring,hipri=1,fsync=4", "does not support fsync"),
        ("direct=1,rw=randtrim", "trims through the kernel"),
        ("ioengine=mmap,rw=randtrim", "trims through the page cache"),
    ] {
        let fault = ways(text, true).expect_err(text);
        assert!(fault.what.contains(what) && fault.place.is_some(), "{fault}");
    }
    let polling = |text: &str, queues| {
        parse_inline(&format!("fio:rw=randread,bs=4k,hipri=1,{text}")).expect(text).polling(queues).join("; ")
    };
    assert_eq!(polling("direct=1,ioengine=io_uring", 1), "");
    for (text, what) in [
        ("direct=1,ioengine=io_uring", "no polled queue"),
        ("direct=1,ioengine=pvsync2", "polls only for io_uring"),
        ("direct=0,ioengine=pvsync2", "are not polled"),
        ("ioengine=io_uring", "straight to the drive"),
    ] {
        assert!(polling(text, 0).contains(what), "{text}");
    }
}
