//! Texts and the kernels that they name, and a check that every assignment of programs to mixes fits the paper's
//! statements.

use super::{OnData, Program, Room, names, open};
use super::{
    mixes::{ASSIGNMENTS, CAPACITY, NAMES, PROGRAMS, assignment, firsts},
    *,
};
use nest::executed::Summary;
use nest::{Kernel, Section};
use std::collections::BTreeSet;

/// Dots of Table 2, row by row.
const DOTS: [(&str, usize); 14] = [
    ("atax", 4),
    ("bicg", 4),
    ("2dcon", 5),
    ("mvt", 9),
    ("adi", 9),
    ("fdtd", 8),
    ("gesum", 8),
    ("syrk", 5),
    ("3mm", 4),
    ("covar", 5),
    ("gemm", 8),
    ("2mm", 7),
    ("syr2k", 4),
    ("corr", 4),
];

/// Returns the page groups of four instances: input is shared.
fn groups_of_four(name: &str, text: &str) -> u64 {
    let kernel = Kernel::read(text, name, &[]).expect("a program");
    let times = |section| if section == Section::Input { 1 } else { 4 };
    kernel.arrays().iter().map(|array| times(array.section) * array.bytes().div_ceil(65_536)).sum()
}

#[test]
fn every_assignment_fits_the_table_and_the_text() {
    let papers: Vec<_> = nest::programs()[..14]
        .iter()
        .map(|(name, text)| *Kernel::read(text, name, &[]).expect("a program").paper().expect("its row"))
        .collect();
    let groups: Vec<u64> =
        nest::programs()[..14].iter().map(|(name, text)| groups_of_four(name, text)).collect();
    let mut seen = BTreeSet::new();
    for number in 0..ASSIGNMENTS {
        let mixes = assignment(number);
        for (program, (name, dots)) in DOTS.iter().enumerate() {
            assert_eq!(nest::programs()[program].0, *name);
            let held = mixes.iter().filter(|mix| mix.contains(&program)).count();
            assert_eq!(held, *dots, "assignment {number}: {name}");
        }
        for mix in &mixes {
            assert_eq!(mix.iter().collect::<BTreeSet<_>>().len(), PROGRAMS, "assignment {number}");
            assert!(mix.is_sorted());
            let needs: u64 = mix.iter().map(|program| groups[*program]).sum();
            assert!(needs <= u64::from(CAPACITY), "assignment {number}: {needs} page groups");
            assert!(
                mix.iter().any(|program| papers[*program].bki < 6.0),
                "assignment {number}: no computing"
            );
        }
        let data = mixes[0].iter().filter(|program| papers[**program].bki > 30.0).count();
        assert_eq!(data, 4, "assignment {number}: MX1");
        for mix in [4, 5, 8, 14] {
            let serial: usize = mixes[mix - 1].iter().map(|program| papers[*program].serial).sum();
            assert!(serial >= 2, "assignment {number}: MX{mix}");
        }
        assert_eq!(mixes, assignment(number), "the same number, another draw");
        seen.insert(mixes);
    }
    assert_eq!(seen.len(), ASSIGNMENTS as usize, "assignments that are the same");
}

#[test]
fn the_first_of_each_mix_holds_the_same_programs_and_no_other_mix_does() {
    let firsts = firsts();
    assert_eq!(firsts.len(), ASSIGNMENTS as usize);
    let mut programs = std::collections::BTreeMap::new();
    for (number, firsts) in (0..).zip(&firsts) {
        for (mix, first @ (of, place)) in firsts.iter().enumerate() {
            assert!((*of, *place) <= (number, mix), "MX{} of {number}: {first:?}", mix + 1);
            let held = assignment(number)[mix];
            assert_eq!(assignment(*of)[*place], held, "MX{} of {number}", mix + 1);
            assert_eq!(programs.entry(held).or_insert(first), &first, "MX{} of {number}", mix + 1);
        }
    }
    // Fewer than 3,003 sets of six programs, and 2,800 draws.
    assert!(programs.len() < 2_000, "{} are different", programs.len());
}

/// In mixes without further statements, a program is in about as many as its dots allow: nine of fourteen for MVT. A
/// share that is drawn 200 times has a standard deviation of 0.034.
#[test]
fn assignments_are_drawn_evenly() {
    let all: Vec<_> = (0..ASSIGNMENTS).map(assignment).collect();
    let mvt = |mix: usize| all.iter().filter(|mixes| mixes[mix].contains(&3)).count() as f64 / 200.0;
    for mix in [1, 2, 5, 6, 8, 9] {
        assert!((mvt(mix) - 9.0 / 14.0).abs() < 4.0 * 0.034, "MX{}: {}", mix + 1, mvt(mix));
    }
}

#[test]
fn texts_name_applications() {
    let atax = open("atax:m=1024,n=512,instances=6").expect("a program");
    assert_eq!((atax.len(), atax[0].instances, atax[0].program.name()), (1, 6, "atax"));
    let Program::Nest(kernel) = &atax[0].program else { panic!("a nest") };
    let sizes: Vec<_> = kernel.sizes().iter().map(|(name, size)| (name.as_str(), *size)).collect();
    assert_eq!(sizes, [("m", 1024), ("n", 512)]);
    let mix = open("mx3:assignment=199").expect("a mix");
    assert_eq!(mix.len(), PROGRAMS);
    assert!(mix.iter().all(|application| application.instances == 4));
    let programs = assignment(199)[2].map(|program| nest::programs()[program].0);
    assert_eq!(mix.iter().map(|application| application.program.name()).collect::<Vec<_>>(), programs);
    assert_eq!(names().count(), nest::programs().len() + 3 + 1 + NAMES.len());
    for name in names() {
        let others = crate::program::entries().map(|entry| entry.name);
        let others = others.chain(crate::service::entries().map(|entry| entry.name));
        let mut others = others.chain(crate::host::entries().map(|entry| entry.name));
        assert!(others.all(|other| other != name), "two workloads are called {name}");
    }
}

/// Equal generated data are shared in memory; a file is read each time.
#[test]
fn data_are_drawn_once_and_read_each_time() {
    let drawn = on_data("wc:bytes=4KiB,words=16,seed=7");
    assert!(std::sync::Arc::ptr_eq(&drawn, &on_data("wc:seed=7,words=16,bytes=4KiB,instances=3")));
    assert_ne!(drawn, on_data("wc:bytes=4KiB,words=16,seed=8"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("words");
    let read = |text: &str| {
        std::fs::write(&file, text).expect("a file");
        on_data(&format!("wc:text={}", file.display()))
    };
    assert_ne!(read("to be"), read("or not"));
}

#[test]
fn a_user_s_own_kernel_is_read_from_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("own.toml");
    let text = nest::programs()[0].1.replace("\"atax\"", "\"mine\"");
    std::fs::write(&file, text).expect("a file");
    let file = file.display().to_string();
    let own = open(&format!("nest:file={file},m=64,instances=2")).expect("a kernel");
    assert_eq!((own[0].program.name(), own[0].instances), ("mine", 2));
    // Outside its array: the nest's own diagnostic, with its place.
    let wrong = nest::programs()[0].1.replace("x[j]; }", "x[j + 1]; }");
    std::fs::write(&file, wrong).expect("a file");
    let told = open(&format!("nest:file={file}")).expect_err("outside its array");
    assert!(told.place.is_some_and(|place| place.source.contains("own.toml")));
}

#[test]
fn what_is_wrong_is_told_once_with_its_place_and_the_nearest() {
    for (text, words, column, nearest) in [
        ("atax:instance=2", "unknown parameter `instance`", 6, Some("instances")),
        ("atax:m=16,m=32", "given twice", 6, None),
        ("atax:m=", "has no value", 6, None),
        ("atax:m=0", "`0` is not a valid value of size `m`", 8, None),
        ("atax:instances=0", "`0` is not a valid value", 16, None),
        ("atax:inputs=mine", "`mine` is not a valid value of parameter `inputs`", 13, None),
        ("atxa", "unknown kernel `atxa`", 1, Some("atax")),
        ("mx1:assignment=200", "`200` is not a valid value", 16, None),
        ("mx1:m=4", "unknown parameter `m`", 5, None),
        ("nest:instances=2", "needs a file", 6, None),
        ("bfs:node=16", "unknown parameter `node`", 5, Some("nodes")),
        ("bfs:nodes=16,source=16", "`16` is not a valid value of parameter `source`", 11, None),
        ("bfs:nodes=16,degree=3", "`3` is not a valid value of parameter `degree`", 21, None),
        (
            "bfs:nodes=134217728,degree=1000",
            "`134217728` is not a valid value of parameter `nodes`",
            11,
            None,
        ),
        ("bfs:graph=g.txt,nodes=4", "`nodes` applies to generated data", 17, None),
        ("nn:latitude=91", "`91` is not a valid value of parameter `latitude`", 13, None),
        ("nn:file=there-is-none", "cannot read `there-is-none`", 9, None),
        ("wc:bytes=4MB,instances=0", "`0` is not a valid value", 24, None),
        ("wc:bytes=5GB", "`5GB` is not a valid value of parameter `bytes`", 10, None),
    ] {
        let told = open(text).expect_err(text);
        assert!(told.what.contains(words), "{text}: {}", told.what);
        let place = told.place.unwrap_or_else(|| panic!("{text}: no place"));
        assert_eq!((place.column, told.nearest.as_deref()), (column, nearest), "{text}");
    }
    assert!(open("nest:file=there-is-no-such-file.toml").is_err());
}

fn on_data(text: &str) -> std::sync::Arc<OnData> {
    match &open(text).expect(text)[0].program {
        Program::Executed(on_data) => on_data.clone(),
        Program::Nest(_) => panic!("{text} is a nest"),
    }
}

/// A graph takes 8 B per node, two ends of 4 B per edge. 10,000 nodes draw three partners each on average; a few
/// loops and repeated edges are dropped.
#[test]
fn programs_are_executed_on_drawn_data() {
    let graph = on_data("bfs:nodes=10000");
    let edges = (graph.input_bytes() - 80_000) / 4;
    assert!((59_500..=60_500).contains(&edges), "{edges} edges");
    assert_eq!(graph.bytes_of(Section::Output), 40_000);
    // The first, and two for each level; a random graph of degree 6 is about log 10,000 / log 5 = 6 levels deep.
    let summary = Summary::of(graph.program());
    assert!((13..=21).contains(&summary.microblocks) && summary.serial == 1, "{summary:?}");
    assert_ne!(graph, on_data("bfs:nodes=10000,seed=2"));
    assert_eq!(graph, on_data("bfs:nodes=10000,degree=6,source=0"));

    let places = on_data("nn:records=5000,nearest=7");
    assert_eq!((places.input_bytes(), places.bytes_of(Section::Output)), (5_000 * 49, 7 * 56));
    let words = on_data("wc:bytes=100kB,words=50");
    assert_eq!(words.input_bytes(), 100_000);
    let OnData::Wc(program) = &*words else { panic!("words") };
    assert!(program.counts(&mut Deaf).len() <= 52, "50 words, and two that an end has cut");
}

struct Deaf;

impl nest::executed::Watch for Deaf {
    fn microblock(&mut self, _: bool) {}
    fn piece(&mut self) {}
    fn body(&mut self, _: usize, _: u64, _: u64) {}
    fn access(&mut self, _: usize, _: u64, _: bool) {}
}

#[test]
fn programs_are_executed_on_a_user_s_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let graph = file("g.txt", b"0 1\n0 2\n1 3\n2 3\n3 4\n");
    let OnData::Bfs(search) = &*on_data(&format!("bfs:graph={graph}")) else { panic!("a search") };
    assert_eq!(search.levels(&mut Deaf), [0, 1, 1, 2, 3]);
    let OnData::Bfs(search) = &*on_data(&format!("bfs:graph={graph},source=2")) else { panic!("a search") };
    assert_eq!(search.levels(&mut Deaf), [-1, -1, 0, 1, 2]);
    let text = file("t.txt", b"one two One three");
    let OnData::Wc(words) = &*on_data(&format!("wc:text={text}")) else { panic!("words") };
    let mut times: Vec<u32> = words.counts(&mut Deaf).iter().map(|count| count.times).collect();
    times.sort_unstable();
    assert_eq!(times, [1, 1, 2]);
    let told = open(&format!("nn:file={text}")).expect_err("no records");
    assert!(told.what.contains("17 B, not a multiple of the record size of 49 B"), "{}", told.what);
    let empty = file("empty", b"");
    for text in [format!("nn:file={empty}"), format!("wc:text={empty}")] {
        assert!(open(&text).expect_err("nothing").what.contains("is empty"));
    }
}

/// A room of 64 KiB is 5,461 records of 12 B. A fifth of the words of 16 different ones is the first, so that 1 MB of
/// them, at most 10 B each, has four times as many. A text of 4 GB, which would take minutes, is not made.
#[test]
fn words_that_a_section_has_no_room_for_are_refused_before_they_are_made() {
    let fits = |text: &str, bytes: u64| super::fits(text, Room { bytes, group: 64 << 10 });
    let room = 64 << 10;
    let told = fits("wc:bytes=1MB,words=16", room).expect_err("too many");
    assert!(told.what.contains("a piece of `wc` touches more than 64KiB"), "{}", told.what);
    let told = fits("wc:bytes=4GB", 8 << 20).expect_err("too many");
    assert!(told.what.contains("a section has room for 8MiB"), "{}", told.what);
    fits("wc:bytes=4GB", 4 << 30).expect("it may fit");
    fits("wc:bytes=10kB,words=16", room).expect("it fits");
    fits("wc", 85 << 20).expect("it fits");
    fits("bfs:nodes=1000", room).expect("it is not known");
    fits("atax", room).expect("a nest");
    assert!(fits("wc:byts=1MB", room).expect_err("a parameter").what.contains("byts"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t.txt");
    std::fs::write(&file, "word ".repeat(5_463)).expect("a file");
    let text = format!("wc:text={}", file.display());
    assert!(fits(&text, room).is_err());
    fits(&text, room + 12).expect("it fits");
}

/// Each of three instances has a matrix of 16 groups of 64 KiB, and a vector of one for input, output and between: 57
/// groups. With one group less, matrix and vector are shared. Input that is shared or separate on purpose stays so.
#[test]
fn all_have_their_own_or_none_has() {
    let all = || {
        let texts = ["atax:m=512,n=512,instances=2,inputs=fit", "atax:m=512,n=512,instances=1,inputs=fit"];
        let mut all: Vec<Application> =
            texts.iter().flat_map(|text| open(text).expect("a program")).collect();
        all.extend(open("mvt:n=256,t=64,inputs=own").expect("a program"));
        all
    };
    let whose = |of: &[Application]| of.iter().map(|one| one.inputs).collect::<Vec<_>>();
    // MVT has a matrix of 4 groups and four vectors.
    for (room, inputs) in [(65, Inputs::Own), (64, Inputs::Shared)] {
        let mut applications = all();
        let settled = settle(&mut applications, 64 << 10, room);
        assert_eq!(settled, Some(Settled { inputs, needed: 57 + 8 }));
        assert_eq!(whose(&applications), [inputs, inputs, Inputs::Own]);
    }
    let mut shared = all();
    settle(&mut shared, 64 << 10, 0);
    assert_eq!(needed(&shared, 64 << 10), 17 + 3 * 2 + 8);
    assert_eq!(settle(&mut shared, 64 << 10, 0), None);
}
