//! Questions about a whole spec: which keys move a metric, what a part of a drive is, what a word means, which build this is.

use crate::common::{TINY, nandscape, refused};

const ASK: [&str; 8] = [
    "sensitivity",
    "d16",
    "--workload",
    "fio:rw=randread,bs=4k,iodepth=4,number_ios=200",
    "--set",
    "flash.precondition=sequential",
    "--metric",
    "io.read.latency_ns.mean",
];

fn ask(more: &[&str]) -> Vec<&'static str> {
    let more: Vec<&'static str> =
        more.iter().map(|text| &*Box::leak((*text).to_owned().into_boxed_str())).collect();
    ASK.into_iter().chain(more).collect()
}

/// An idle read is the cell's time and the transfer: the first moves it most, erases not at all.
#[test]
fn the_cell_moves_an_idle_read_most() {
    let found =
        nandscape(&ask(&["--key", "flash.cell.read", "--key", "flash.cell.erase", "--json"])).well().json();
    let effects = found["found"]["effects"].as_array().expect("a list");
    assert_eq!((&effects[0]["key"], &effects[0]["now"]), (&"flash.cell.read".into(), &"[\"50us\"]".into()));
    let relative = |at: usize, side: &str| effects[at][side]["relative"].as_f64().expect("a number");
    assert!(relative(0, "with_more") > 0.5 && relative(0, "with_less") < -0.2, "{}", effects[0]);
    let erase = effects.iter().find(|effect| effect["key"] == "flash.cell.erase").expect("it is varied");
    assert_eq!(erase["with_more"]["relative"], 0.0);
    // The same run alone gives the metric of the larger value.
    let run = ["run", "d16", "--json", "--set", "flash.cell.read=[\"100us\"]"];
    let run = nandscape(&[&run[..], &ASK[2..6]].concat()).well().json();
    assert_eq!(effects[0]["with_more"]["value"], run["io"]["read"]["latency_ns"]["mean"]);
}

#[test]
fn the_table_fits_a_terminal_and_the_page_draws_it() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("tornado.html").display().to_string();
    let text = nandscape(&ask(&["--key", "flash.cell.read", "--key", "flash.cell.erase", "--html", &page]))
        .well()
        .stdout;
    assert!(text.contains("flash.cell.read") && text.contains("no effect: "), "{text}");
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 80), "{text}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(
        page.contains("Sensitivity of io.read.latency_ns.mean on d16") && page.contains("flash.cell.read")
    );
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let mut wrong = ASK;
    wrong[7] = "io.read.latency_ns.p9";
    refused(&wrong, &["unknown metric `io.read.latency_ns.p9`", "--metric", "did you mean"]);
    refused(&ask(&["--key", "flash.cel"]), &["begins with `flash.cel`"]);
    refused(&ask(&["--by", "1"]), &["it must be above 1"]);
    refused(&["run", "ideal", "--workload", "gaus:n=16", "--scale", "1/4"], &["no drive to scale"]);
    refused(&["run", "d16", "--workload", "randread", "--scale", "1/3"], &["powers of two"]);
}

#[test]
fn a_part_of_a_drive_says_what_it_sets() {
    let run = ["run", "d16", "--workload", "fio:rw=randread,bs=4k,number_ios=10", "--scale", "1/4", "--json"];
    let done = nandscape(&[&run[..], &["--precondition", "none"]].concat()).well();
    assert!(done.stderr.contains("--scale 1/4: flash.geometry.blocks=128"), "{}", done.stderr);
    assert_eq!(done.json()["spec"]["flash"]["geometry"]["blocks"], 128);
}

#[test]
fn words_are_explained_and_a_build_says_which_it_is() {
    let said = nandscape(&["explain", "GC"]).well().stdout;
    assert!(said.contains("garbage collection (GC") && said.contains("in the glossary"), "{said}");
    refused(&["explain", "garbage"], &["unknown name `garbage`", "did you mean `garbage collection`"]);
    let version = nandscape(&["--version"]).well().stdout;
    assert!(version.lines().nth(1).is_some_and(|line| line.starts_with("results ")), "{version}");
    let run = ["run", "d16", "--json", "--workload", "fio:rw=randread,bs=4k,number_ios=10"];
    let run = nandscape(&[&run[..], &TINY].concat()).well().json();
    assert!(version.contains(run["run"]["commit"].as_str().expect("a commit")), "{version}");
    assert!(version.contains(run["run"]["results"].as_str().expect("a revision")), "{version}");
}
