//! Files that jobs access, and their places. Expected values follow from fio's HOWTO ("Target file/device", `size`,
//! `filesize`, `offset`) and from `setup_files` and `get_next_file` of its source.

#![allow(clippy::result_large_err, reason = "a diagnostic is made once")]

use crate::fio_common::{Run, drive, run_file};
use engine::Time;
use requests::fio::{Jobs, LaidOut, Layout, parse_inline, parse_text};

const MIB: u64 = 1 << 20;
const ROOM: u64 = 64 * MIB;

fn jobs(text: &str) -> Jobs {
    parse_text("t.fio", text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

/// Returns first byte and length of the region of every clone, in the order of flows, in KiB.
fn regions(text: &str) -> Vec<(u64, u64)> {
    let groups = jobs(text).resolve(ROOM).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    groups.iter().flat_map(|group| &group.jobs).map(|job| (job.start >> 10, job.all_bytes() >> 10)).collect()
}

fn laid_out(text: &str) -> Vec<LaidOut> {
    Layout::of([&jobs(text)], ROOM).unwrap_or_else(|fault| panic!("{text}: {fault}")).laid_out()
}

fn notes(text: &str) -> String {
    Layout::of([&jobs(text)], ROOM).unwrap_or_else(|fault| panic!("{text}: {fault}")).notes().join("\n")
}

/// "Fio normally makes up a filename based on the job name, thread number, and file number."
#[test]
fn a_job_and_a_clone_have_a_file_of_their_own() {
    assert_eq!(regions("[global]\nsize=4m\n[a]\n[b]\n"), [(0, 4096), (4096, 4096)]);
    let text = "[global]\nsize=1m\n[a]\nnumjobs=3\n[b]\nsize=2m\n";
    assert_eq!(regions(text), [(0, 1024), (1024, 1024), (2048, 1024), (3072, 2048)]);
    let names: Vec<_> = laid_out(text).into_iter().map(|file| (file.name, file.files, file.jobs)).collect();
    assert_eq!(names, [("a.0.0".into(), 3, vec!["a".into()]), ("b.0.0".into(), 1, vec!["b".into()])]);
    // Jobs behind a stonewall have their own files too, and files begin at blocks of a file system.
    assert_eq!(regions("[a]\nsize=5k\nbs=1k\n[b]\nstonewall\nsize=4k\n"), [(0, 5), (8, 4)]);
}

/// "If you want to share files between threads in a job or several jobs with fixed file paths, specify a filename for each of them."
#[test]
fn a_name_that_is_given_is_one_file() {
    assert_eq!(regions("[global]\nfilename=f\nsize=1m\n[a]\nnumjobs=2\n[b]\n"), [(0, 1024); 3]);
    // The file is as long as the job that needs most of it; offsets count from its start.
    let text =
        "[x]\nsize=1m\n[a]\nfilename=f\nsize=1m\noffset=2m\n[b]\nfilename=f\nsize=50%\n[c]\nfilename=f\n";
    assert_eq!(regions(text), [(0, 1024), (3072, 1024), (1024, 1536), (1024, 3072)]);
    // Directories are prefixes of names, and so make different names.
    assert_eq!(
        regions("[global]\nsize=1m\nfilename=f\n[a]\ndirectory=/x\n[b]\ndirectory=/y\n[c]\ndirectory=/x/\n"),
        [(0, 1024), (1024, 1024), (0, 1024)]
    );
    // `filename` in some jobs only.
    assert_eq!(
        regions("[global]\nsize=1m\n[a]\n[b]\nfilename=f\n[c]\nfilename=f\n"),
        [(0, 1024), (1024, 1024), (1024, 1024)]
    );
    assert_eq!(laid_out("[a]\nfilename=dir\\:1/f\nsize=1m\n")[0].name, "dir:1/f");
}

/// "If `testfiles.$filenum` is specified, file number 4 for any job will be named `testfiles.4`."
#[test]
fn a_format_makes_names() {
    let text = "[global]\nsize=1m\nfilename_format=data.$filenum\n[a]\nnumjobs=2\n[b]\n";
    assert_eq!(regions(text), [(0, 1024); 3]);
    let text = "[global]\nsize=1m\nfilename_format=data.$jobnum\n[a]\nnumjobs=2\n[b]\nnumjobs=2\n";
    assert_eq!(regions(text), [(0, 1024), (1024, 1024), (0, 1024), (1024, 1024)]);
    let several = "[global]\nsize=1m\nfilename_format=data\ndirectory=/x:/y\n[a]\nnumjobs=3\n";
    assert_eq!(regions(several), [(0, 1024), (1024, 1024), (0, 1024)]);
    let said =
        parse_text("t.fio", "[a]\nfilename_format=$job.$filenum\n").expect_err("a keyword").to_string();
    assert!(said.contains("`$job`") && said.contains("$jobname"), "{said}");
}

/// A device is shared, whatever its name; so is the drive of an inline job.
#[test]
fn a_named_device_is_shared() {
    for name in
        ["/dev/nvme0n1", "/dev/disk/by-id/x", r"\\.\PhysicalDrive1", "trtype=PCIe traddr=0000.04.00.0 ns=1"]
    {
        let text = format!("[global]\nfilename={name}\nsize=1m\n[a]\nnumjobs=2\n[b]\noffset=1m\n");
        assert_eq!(regions(&text), [(0, 1024), (0, 1024), (1024, 1024)], "{name}");
    }
    assert_eq!(regions("[/dev/sda]\nsize=1m\nnumjobs=2\n"), [(0, 1024); 2]);
    assert_eq!(regions("[global]\nioengine=spdk\nsize=1m\n[a]\n[b]\n"), [(0, 1024); 2]);
    assert_eq!(
        regions("[global]\nsize=1m\ndirectory=/dev\n[a]\nfilename=sda\n[b]\nfilename=sda\n"),
        [(0, 1024); 2]
    );
    // tmpfs is a file system.
    assert_eq!(
        regions("[global]\nsize=1m\n[a]\nfilename=/dev/shm/a\n[b]\nfilename=/dev/shm/b\n"),
        [(0, 1024), (1024, 1024)]
    );
    let inline = |text: &str| -> Vec<u64> {
        let groups = parse_inline(text).expect(text).resolve(ROOM).expect(text);
        groups[0].jobs.iter().map(|job| job.start).collect()
    };
    assert_eq!(inline("fio:rw=read,size=1m,numjobs=2"), [0, 0]);
    assert_eq!(inline("fio:rw=read,size=1m,numjobs=2,nrfiles=2"), [0, MIB]);
}

/// "The size of files will be `size` divided by this unless explicit size is specified by `filesize`."
#[test]
fn size_is_divided_among_files() {
    let files = |text: &str| -> Vec<(u64, u64)> {
        let groups = jobs(text).resolve(ROOM).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let of = |job: &requests::synth::Job| job.files.clone().expect("several files").regions;
        groups[0].jobs.iter().flat_map(of).map(|region| (region.start, region.bytes)).collect()
    };
    assert_eq!(files("[a]\nsize=1m\nnrfiles=4\n"), [0, 1, 2, 3].map(|n| (n << 18, 1 << 18)));
    // 40960 / 3 = 13653 bytes are 26 sectors and a bit; the remaining byte is not a block.
    assert_eq!(
        files("[a]\nsize=40k\nnrfiles=3\n").iter().map(|file| file.1).collect::<Vec<_>>(),
        [13_312; 3]
    );
    assert_eq!(files("[a]\nsize=8k\nnrfiles=3\nbs=512\n")[0].1, 8192 / 3 / 512 * 512);
    assert_eq!(
        files("[a]\nfilesize=64k\nnrfiles=2\n[b]\nnrfiles=1\nsize=8k\nfilename=x:y\n"),
        [(0, 65_536), (65_536, 65_536), (131_072, 4096), (135_168, 4096)]
    );
    // The number of names in `filename` sets the number of files.
    assert_eq!(files("[a]\nfilename=x:y\nnrfiles=9\nsize=8k\n"), [(0, 4096), (4096, 4096)]);
    for (_, bytes) in files("[a]\nfilesize=16k-64k\nnrfiles=50\nbs=4k\n") {
        assert!((16_384..=65_536).contains(&bytes) && bytes % 4096 == 0, "{bytes}");
    }
}

/// "If `filesize` is specified then `size` becomes merely the default for `io_size`."
#[test]
fn beside_a_file_size_size_says_how_much_is_done() {
    let run = |text: &str| -> Run { run_file(text).remove(0).remove(0) };
    let some = run("[a]\nrw=read\nfilesize=64k\nsize=16k\n");
    assert_eq!(some.offsets(), [0, 4096, 8192, 12_288]);
    assert_eq!(run("[a]\nrw=read\nfilesize=64k\nsize=16k\nio_size=128k\n").bytes(), 128 << 10);
    assert_eq!(run("[a]\nrw=read\nfilesize=64k\n").bytes(), 64 << 10);
    assert_eq!(run("[a]\nrw=read\nfilesize=64k\noffset=32k\n").offsets()[0], 32 << 10);
    let on_device = run("[a]\nfilename=/dev/x\nrw=randread\nfilesize=64k\n");
    assert_eq!((on_device.bytes(), on_device.job.bytes), (64 << 10, 64 << 10));
}

/// Order of blocks in several files, as in `get_next_file`.
#[test]
fn files_are_served_as_their_type_says() {
    let order = |more: &str| -> Vec<u64> {
        let text = format!("[a]\nrw=read\nsize=48k\nnrfiles=3\n{more}\n");
        run_file(&text).remove(0).remove(0).offsets().iter().map(|offset| offset >> 12).collect()
    };
    // Files 0, 1, 2 have blocks 0-3, 4-7, 8-11.
    assert_eq!(order(""), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
    assert_eq!(order("file_service_type=roundrobin:2"), [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]);
    assert_eq!(order("file_service_type=sequential"), (0..12).collect::<Vec<_>>());
    assert_eq!(order("openfiles=1"), (0..12).collect::<Vec<_>>());
    assert_eq!(order("openfiles=2"), [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10, 11]);
    let mut random = order("file_service_type=random");
    assert_ne!(random[..4], [0, 4, 8, 1]);
    random.sort_unstable();
    assert_eq!(random, (0..12).collect::<Vec<_>>());
    // Each block once, in a random order within each file; two passes do it twice.
    let mut twice = order("rw=randwrite\nloops=2");
    twice.sort_unstable();
    assert_eq!(twice, (0..24).map(|n| n / 2).collect::<Vec<u64>>());
}

/// Returns the requests of each file under a `file_service_type`.
fn served(more: &str, files: u64, seed: u64) -> Vec<f64> {
    let text = format!("[a]\nrw=randread\nsize=8m\nnorandommap\nio_size=160m\nnrfiles={files}\n{more}\n");
    let job =
        jobs(&text).resolve(ROOM).unwrap_or_else(|fault| panic!("{text}: {fault}")).remove(0).jobs.remove(0);
    let regions = job.files.clone().expect("several files").regions;
    let mut counts = vec![0.0; regions.len()];
    for request in drive(job, seed, |_| Time::from_us(10)).data() {
        let of = regions.iter().position(|r| (r.start..r.start + r.bytes).contains(&request.offset));
        counts[of.expect("in a file")] += 1.0;
    }
    counts
}

/// "*zipf*: Use a *Zipf* distribution to decide what file to access", and so on; the number after it as in
/// `random_distribution`. fio gives each file 1024 ranks (`init_rand_file_service`), and the center is the place of
/// the first of them, or of the median.
#[test]
fn a_skewed_choice_of_files_follows_its_distribution() {
    // 160 MiB of 4 KiB: 40,960 requests. Five standard deviations of a binomial share are at most 507.
    let total = 40_960.0;
    let check = |more: &str, expected: &[f64]| {
        let counts = served(more, expected.len() as u64, 1);
        assert_eq!(counts.iter().sum::<f64>(), total, "{more}");
        for (count, share) in counts.iter().zip(expected) {
            let sigma = (total * share * (1.0 - share)).sqrt();
            assert!((count - total * share).abs() < 5.0 * sigma + 1.0, "{more}: {counts:?}, {expected:?}");
        }
    };
    for (option, theta) in [("zipf:1.2:0", 1.2), ("zipf:0.6:0", 0.6), ("zipf:1.1:0", 1.1)] {
        let sum =
            |from: u32| (from + 1..=from + 1024).map(|rank| libm::pow(rank.into(), -theta)).sum::<f64>();
        let sums = [sum(0), sum(1024), sum(2048), sum(3072)];
        let all: f64 = sums.iter().sum();
        check(&format!("file_service_type={option}"), &sums.map(|part| part / all));
    }
    // The first 20 % get 80 %: one file of five. The last file that is whole follows from u^(ln h / ln(1 - h)) < k / 5.
    let power = libm::log(0.2) / libm::log(0.8);
    let below = |k: f64| libm::pow(k / 5.0, 1.0 / power);
    let pareto: Vec<f64> = (0..5).map(|k| below(f64::from(k) + 1.0) - below(f64::from(k))).collect();
    assert!((pareto[0] - 0.8).abs() < 1e-9);
    check("file_service_type=pareto:0.2:0", &pareto);
    // The center shifts it, and it wraps.
    check("file_service_type=pareto:0.2:0.4", &[pareto[3], pareto[4], pareto[0], pareto[1], pareto[2]]);
    // The mean of twelve uniform draws: a standard deviation of a twelfth, so two files beside the middle get 99.73 %
    // (three deviations).
    for option in ["normal", "gauss", "normal:0", "gauss:0:0.5"] {
        let counts = served(&format!("file_service_type={option}"), 4, 1);
        let middle = counts[1] + counts[2];
        assert!(
            (middle / total - 0.9973).abs() < 0.002 && (counts[1] - counts[2]).abs() < 1012.0,
            "{counts:?}"
        );
    }
    let moved = served("file_service_type=gauss:0:0.25", 4, 1);
    assert!((moved[0] + moved[1]) / total > 0.995, "{moved:?}");
}

/// The draw depends only on the seed; every request is drawn anew, and exhausted files start over.
#[test]
fn a_skewed_choice_of_files_is_that_of_the_seed() {
    let zipf = "file_service_type=zipf";
    assert_eq!(served(zipf, 6, 1), served(zipf, 6, 1));
    let hottest = |seed: u64| {
        let counts = served(zipf, 6, seed);
        (0..6).max_by(|a, b| counts[*a].total_cmp(&counts[*b])).expect("six")
    };
    // Without a center the hottest file is anywhere.
    let mut all: Vec<usize> = (1..20).map(hottest).collect();
    all.dedup();
    assert!(all.len() > 3, "{all:?}");
    // 12 blocks in three files, of which the hottest is read repeatedly.
    let text = "[a]\nrw=read\nsize=48k\nnrfiles=3\nfile_service_type=zipf:3:0\n";
    let offsets = run_file(text).remove(0).remove(0).offsets();
    assert_eq!(offsets.len(), 12);
    assert!(offsets.iter().filter(|offset| **offset == 0).count() > 1, "{offsets:?}");
    // Among files in use, however improbable: the draw terminates.
    let text = "[a]\nrw=read\nsize=48k\nnrfiles=3\nopenfiles=1\nfile_service_type=zipf:40:0.9\n";
    assert_eq!(run_file(text).remove(0).remove(0).offsets().len(), 12);
    for (wrong, said) in [
        ("zipf:0", "zipf theta"),
        ("pareto:1", "pareto power"),
        ("gauss:100", "normal deviation"),
        ("zip", "zipf"),
    ] {
        let fault = parse_text("t.fio", &format!("[a]\nfile_service_type={wrong}\n")).expect_err(wrong);
        assert!(fault.to_string().contains(said), "{fault}");
    }
}

/// fio refuses to lay out a file without a size, and to trim a file: such a job covers the drive, and the result says
/// so.
#[test]
fn what_fio_would_not_lay_out_goes_over_the_drive() {
    assert_eq!(regions("[a]\n"), [(0, ROOM >> 10)]);
    assert_eq!(regions("[a]\nsize=25%\n[b]\nsize=25%\noffset=50%\n"), [(0, 16_384), (32_768, 16_384)]);
    for (text, said) in [
        ("[a]\n", "size is not given in bytes"),
        ("[a]\nsize=100%\n", "`a.0.0`"),
        ("[a]\nfilename=x\n", "filename"),
        ("[a]\nrw=randtrim\nsize=1m\n", "trims"),
        ("[a]\nsize=1m\n[b]\n", "`b` cover the whole drive, which also holds the files of `a`"),
    ] {
        assert!(notes(text).contains(said), "{text}: {}", notes(text));
    }
    for text in ["[a]\nsize=1m\n", "[a]\nfilename=/dev/x\n", "[a]\nsize=1m\n[b]\nfilename=a.0.0\n"] {
        assert_eq!(notes(text), "", "{text}");
    }
}

#[test]
fn files_that_do_not_fit_are_refused_with_the_room() {
    let fault = jobs("[global]\nsize=20m\n[a]\nnumjobs=3\n[b]\n").resolve(ROOM).expect_err("80 MiB of 64");
    let said = fault.to_string();
    // 4 x 20 MiB in 64 MiB, where 4 x 16 MiB fit.
    for part in ["4 files", "83886080 bytes", "67108864", "16777216", "t.fio:2", "/dev/nvme0n1"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(jobs("[global]\nsize=16m\n[a]\nnumjobs=3\n[b]\n").resolve(ROOM).is_ok());
    // Numbers that do not add up in 64 bits.
    for text in [
        "[a]\nsize=8000000t\nnumjobs=9\n",
        "[a]\nsize=1m\noffset=16000000t\n",
        "[a]\nfilesize=16000000t\nnrfiles=99\n",
    ] {
        assert!(jobs(text).resolve(ROOM).is_err(), "{text}");
    }
}

/// Files with equal names are one file, also across workloads.
#[test]
fn workloads_side_by_side_lie_side_by_side() {
    let (a, b) = (jobs("[a]\nsize=1m\n"), jobs("[b]\nsize=1m\n[a]\nsize=2m\n"));
    let layout = Layout::of([&a, &b], ROOM).expect("they fit");
    let starts = |jobs: &Jobs| -> Vec<u64> {
        let groups = jobs.resolve_on(&layout, ROOM).expect("they fit");
        groups[0].jobs.iter().map(|job| job.start).collect()
    };
    assert_eq!((starts(&a), starts(&b)), (vec![0], vec![2 * MIB, 0]));
}

/// Every request of a job stays in its files.
#[test]
fn requests_stay_in_their_files() {
    let text = "[global]\nrw=randrw\nbsrange=4k-16k\nsize=1m\nnrfiles=3\ntime_based\nruntime=20ms\n[a]\nnumjobs=2\n[b]\nrw=write\n";
    for group in jobs(text).resolve(ROOM).expect("they fit") {
        for job in group.jobs {
            let regions = job.files.clone().expect("several").regions;
            let run = drive(job, 1, |_| Time::from_us(10));
            assert!(run.data().count() > 1000);
            for request in run.data() {
                let end = request.offset + request.bytes;
                assert!(
                    regions.iter().any(|r| r.start <= request.offset && end <= r.start + r.bytes),
                    "{request:?}"
                );
            }
        }
    }
}
