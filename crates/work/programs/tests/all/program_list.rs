//! The list of programs: names, parameters, programs side by side.

use programs::program::{Apps, census, entries, open};

#[test]
fn names_are_distinct_and_say_what_they_are() {
    let names: Vec<&str> = entries().map(|entry| entry.name).collect();
    for (n, name) in names.iter().enumerate() {
        assert!(!names[..n].contains(name), "{name} twice");
        // A dash or a colon would be read as what stands between names.
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric()), "{name}");
    }
    for entry in entries() {
        assert!(!entry.what.is_empty() && !entry.suite.is_empty(), "{}", entry.name);
        for (n, key) in entry.keys.iter().enumerate() {
            assert!(!key.what.is_empty() && !entry.keys[..n].contains(key), "{}: {}", entry.name, key.name);
        }
    }
}

#[test]
fn the_graph_programs_of_table_two_are_there() {
    // ZnG, Table II: read ratio and kernels.
    let table = [
        ("betw", 0.98, 11),
        ("bfs1", 0.95, 7),
        ("bfs2", 0.99, 9),
        ("bfs3", 0.88, 10),
        ("bfs4", 0.97, 12),
        ("bfs5", 0.99, 6),
        ("bfs6", 0.97, 7),
        ("gc1", 0.98, 8),
        ("gc2", 0.99, 10),
        ("sssp3", 0.98, 8),
        ("deg", 1.0, 1),
        ("pr", 0.99, 53),
    ];
    for (name, read_ratio, kernels) in table {
        let entry = entries().find(|entry| entry.name == name).expect(name);
        let row = entry.table.expect(name);
        assert_eq!((row.read_ratio, row.kernels), (read_ratio, kernels), "{name}");
    }
}

#[test]
fn programs_side_by_side_are_those_named() {
    let apps = Apps::new(open(&["deg:scale=4", "bfs1:scale=4,seed=2"]).unwrap());
    assert_eq!((apps.program(0).name(), apps.program(1).name()), ("deg", "bfs1"));
    let wrong = |text: &str| open(&[text]).err().expect(text).to_string();
    assert!(wrong("bfs9").contains("did you mean `bfs"), "{}", wrong("bfs9"));
    assert!(wrong("deg-betv").contains("did you mean `betw`?"), "{}", wrong("deg-betv"));
    assert!(wrong("deg:scal=4").contains("did you mean `scale`?"));
    assert!(wrong("deg:scale=99").contains("a whole number from 1 to 24"));
    assert!(wrong("deg:scale=4,mirrored=maybe").contains("yes, no"));
    assert!(wrong("bfs1:scale=4,root=16").contains("from 0 to 15"));
    assert!(wrong("deg:graph=no-such.txt").contains("no-such.txt"));
    assert!(wrong("betw:scale=4,sources=17").contains("from 1 to 16"));
}

#[test]
fn a_graph_may_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("triangle.txt");
    std::fs::write(&path, "1 2\n2 3\n3 1\n").unwrap();
    let text = format!("deg:graph={},mirrored=no", path.display());
    let counted = census(open(&[text]).unwrap()[0].as_mut());
    // One atomic addition an edge.
    assert_eq!((counted.atomics.lanes, counted.kernels.len()), (3, 1));
    let text = format!("deg:graph={}", path.display());
    assert_eq!(census(open(&[text]).unwrap()[0].as_mut()).atomics.lanes, 6);
}

#[test]
fn bounds_are_kept() {
    let kernels = |text: &str| census(open(&[text]).unwrap()[0].as_mut()).kernels.len();
    assert_eq!(kernels("pr:scale=5,iterations=3"), 6);
    assert_eq!(kernels("gc1:scale=8,rounds=2"), 2);
    assert!(kernels("gc1:scale=8,rounds=0") > 8);
    let of_one = kernels("betw:scale=6,sources=1");
    assert!(kernels("betw:scale=6,sources=3") >= of_one + 6);
}

/// What every program must cost and be by default is in the list's documentation; this one is small enough to run here.
#[test]
fn degree_centrality_only_reads_as_table_two_says() {
    let counted = census(open(&["deg:scale=10"]).unwrap()[0].as_mut());
    assert_eq!((counted.read_ratio(), counted.kernels.len(), counted.stores.lines), (1.0, 1, 0));
    assert!(counted.load_ratio() < 0.9, "its atomics write");
    assert_eq!(counted.touched(), counted.footprint);
}
