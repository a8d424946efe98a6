//! Kernels of users: those of `examples/kernels` run on an accelerator, and what is wrong with one is told once.

mod common;

use common::{file, nandscape, refused};

const EXAMPLES: [&str; 3] = ["heat", "above", "scaled-product"];

fn example(name: &str) -> String {
    format!("{}/../../examples/kernels/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Four instances, whose input is theirs together: all are over, all checks hold, and what `explain` says of one is what all process.
#[test]
fn examples_run_on_an_accelerator() {
    for name in EXAMPLES {
        let workload = format!("nest:file={},instances=4", example(name));
        let document = nandscape(&["run", "flashabacus", "--json", "--workload", &workload]).well().json();
        let accelerator = &document["accelerator"][0];
        let kernels = accelerator["kernels"].as_array().expect("a list");
        assert_eq!(kernels.len(), 4, "{name}");
        assert!(kernels.iter().all(|kernel| kernel["program"] == name && kernel["over_ns"].is_f64()));
        assert_eq!(document["ok"], true, "{name}");
        // Squares of 1,024 of f32, two for the product; 4,096 x 1,024 values.
        let input = match name {
            "heat" => 4 << 20,
            "above" => 16 << 20,
            _ => 8 << 20,
        };
        assert_eq!(accelerator["input_bytes"].as_u64(), Some(4 * input), "{name}");
        let explained = nandscape(&["explain", &format!("nest:file={}", example(name))]).well().stdout;
        assert!(explained.contains(&format!("{:.1} MiB", input as f64 / f64::from(1 << 20))), "{explained}");
    }
}

/// Microblocks are a list, so that there is no text for a circle of them; a kernel that inherits itself would be one.
#[test]
fn what_is_wrong_with_a_kernel_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let heat = std::fs::read_to_string(example("heat")).expect("the example");
    let cases = [
        ("for i in 1..n - 1 {\n  for j", "for i in 0..n - 1 {\n  for j", "plate"),
        ("share * (", "shore * (", "share"),
        ("plate[s][i - 1][j]", "plate[s + 1][i - 1][j]", "split"),
        ("section = \"scratch\"", "section = \"scrach\"", "scratch"),
    ];
    for (from, to, said) in cases {
        assert!(heat.contains(from), "{from}");
        let path = file(folder.path(), "mine.toml", heat.replacen(from, to, 1));
        let workload = format!("nest:file={path}");
        for arguments in [
            vec!["run", "flashabacus", "--json", "--workload", &workload],
            vec!["check", "flashabacus", "--workload", &workload],
            vec!["explain", &workload],
        ] {
            refused(&arguments, &[said, "mine.toml"]);
        }
    }
    let path = file(folder.path(), "itself.toml", "inherits = \"itself\"\nname = \"itself\"\n");
    refused(&["explain", &format!("nest:file={path}")], &["itself"]);
}

/// Programs that depend on their data.
#[test]
fn programs_are_executed_on_data() {
    let folder = tempfile::tempdir().unwrap();
    let text = file(folder.path(), "words.txt", "the cat and the dog\n".repeat(10_000));
    let records = file(folder.path(), "places.txt", format!("{:48}\n", "1950 1 1").repeat(500));
    for (workload, bytes) in [
        ("bfs:nodes=5000,degree=4,instances=2".to_owned(), None),
        (format!("wc:text={text},instances=2"), Some(400_000)),
        (format!("nn:file={records},instances=2"), Some(49_000)),
    ] {
        let document = nandscape(&["run", "flashabacus", "--json", "--workload", &workload]).well().json();
        assert_eq!(document["ok"], true, "{workload}");
        let input = document["accelerator"][0]["input_bytes"].as_u64().expect("a count");
        assert!(bytes.is_none_or(|bytes| bytes == input), "{workload}: {input}");
    }
    for (workload, said) in [
        (format!("nn:file={text}"), "are no records of 49 B"),
        ("wc:text=there-is-none".to_owned(), "cannot read `there-is-none`"),
        (format!("wc:text={},words=4", text), "is of drawn data"),
        ("bfs:nodes=1".to_owned(), "`1` is no value of parameter `nodes`"),
        ("bfs:grph=a.txt".to_owned(), "did you mean `graph`"),
    ] {
        refused(&["run", "flashabacus", "--json", "--workload", &workload], &[said]);
    }
}
