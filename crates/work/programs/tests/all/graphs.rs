//! Graph readers: formats, diagnostics, and the statistics of real files.

use std::collections::BTreeSet;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use config::Diagnostic;
use programs::graph::{Format, Graph, Keep, Order, ReadOptions, Values, read, read_from};

fn parse(name: &str, content: impl Into<Vec<u8>>) -> Result<Graph, Diagnostic> {
    read_from(name, Cursor::new(content.into()), &ReadOptions::default())
}

fn edges(graph: &Graph) -> Vec<(u32, u32)> {
    (0..graph.vertices()).flat_map(|v| graph.neighbours(v).iter().map(move |&w| (v as u32, w))).collect()
}

/// Checks the fault, the line and the allowed values of a diagnostic.
fn refused(name: &str, content: &str, what: &str, line: u64, allowed: &str) {
    let refused = parse(name, content).expect_err(what);
    assert!(refused.to_string().contains(what), "{refused}");
    let place = refused.place.as_ref().expect("a place");
    assert_eq!((place.source.as_str(), place.line), (name, line), "{refused}");
    assert!(refused.allowed.iter().any(|a| a.contains(allowed)) || allowed.is_empty(), "{refused}");
}

#[test]
fn snap_lists() {
    let graph = parse("g.txt", "# a comment\n# Nodes: 3\n7\t900\r\n900 7\n\n 7 12 \n7 12\n12 12").unwrap();
    // Names 7, 12, 900 become 0, 1, 2.
    assert_eq!(edges(&graph), [(0, 1), (0, 1), (0, 2), (1, 1), (2, 0)]);
    let options = ReadOptions {
        keep: Keep::Both,
        order: Order::Appearance,
        format: Some(Format::Snap),
        values: Values::Weights,
    };
    let graph = read_from("g", Cursor::new("900 7\n7 12\n"), &options).unwrap();
    assert_eq!(edges(&graph), [(0, 1), (1, 0), (1, 2), (2, 1)]);
    refused("g.txt", "1 2\n3\n", "the line ends before the second vertex", 2, "");
    refused("g.txt", "1 2\n3 x4\n", "`x4` is not a valid second vertex", 2, "a whole number");
    refused("g.txt", "1 -2\n", "`-2` is not a valid second vertex", 1, "a whole number");
    refused("g.txt", "1 2 3 4 5\n", "more fields than `from to value time`", 1, "");
    refused("g.txt", "18446744073709551616 1\n", "is not a valid vertex", 1, "a whole number");
}

#[test]
fn comma_separated_lists() {
    let with = parse("g.csv", "from,to\n5,3\n3, 9\n").unwrap();
    assert_eq!(edges(&with), [(0, 2), (1, 0)]);
    assert_eq!(parse("g.csv", "5,3\n3,9\n").unwrap(), with);
    assert_eq!(parse("g.csv", "Person.id|Person.id\n5|3\n3|9\n").unwrap(), with);
    refused("g.csv", "5;3\n", "neither by `,` nor by `|`", 1, "");
    refused("g.csv", "5,3\n5\n", "the line has one field", 2, "");
    refused("g.csv", "5,3,1,4,1\n", "more fields", 1, "");
    refused("g.csv", "5,3\nfrom,to\n", "`from` is not a valid vertex", 2, "a whole number");
    refused("g.csv", "5,to\n", "`to` is not a valid second vertex", 1, "a whole number");
}

#[test]
fn metis_graphs() {
    // The example graph of the METIS manual has 7 vertices and 11 edges (figure 2).
    let example = "% the manual's\n7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n";
    let graph = parse("g.graph", example).unwrap();
    assert_eq!((graph.vertices(), graph.edges(), graph.weights()), (7, 22, None));
    assert_eq!(graph.neighbours(3), [1, 2, 5, 6]);
    // With edge weights (fmt 001), and with two vertex weights and sizes too (fmt 111, ncon 2).
    let weighted = parse("g.graph", "2 1 001\n2 9\n1 9\n").unwrap();
    assert_eq!(weighted.weights(), Some(&[9, 9][..]));
    assert_eq!(parse("g.graph", "2 1 111 2\n4 5 6 2 9\n4 5 6 1 9\n").unwrap(), weighted);
    assert_eq!(parse("g.graph", "3 1\n2\n1\n\n").unwrap().vertices(), 3);
    refused("g.graph", "", "the file is empty", 0, "");
    refused("g.graph", "2 1\n3\n1\n", "`3` is not a valid vertex", 2, "from 1 to 2");
    refused("g.graph", "2 1\n0\n1\n", "`0` is not a valid vertex", 2, "from 1 to 2");
    refused("g.graph", "2 2\n2\n1\n", "promises 2 edges, each listed twice, but the lines list 2", 0, "");
    refused("g.graph", "3 1\n2\n1\n", "the file ends after 2 of 3 vertices", 0, "");
    refused("g.graph", "2 1\n2\n1\n1\n", "more lines than the 2 vertices", 4, "");
    refused("g.graph", "2 1 2\n2\n1\n", "`2` is not a valid fmt of METIS", 1, "0 or 1");
    refused("g.graph", "2 1 1\n2\n1\n", "the line ends before the edge weight", 2, "");
}

#[test]
fn dimacs_graphs() {
    let counted = parse("g.gr", "c x\np sp 4 2\na 1 2 7\na 4 1 3\n").unwrap();
    assert_eq!((counted.vertices(), edges(&counted)), (4, vec![(0, 1), (3, 0)]));
    assert_eq!(counted.weights(), Some(&[7, 3][..]));
    // Without the problem line, names may begin at zero, and only names that occur are vertices.
    assert_eq!(parse("g.gr", "a 0 20 7\na 30 0 3\n").unwrap().vertices(), 3);
    refused("g.gr", "p sp 2 1\na 1 3 7\n", "`3` is not a valid second vertex", 2, "from 1 to 2");
    refused("g.gr", "p sp 2 1\na 0 1 7\n", "`0` is not a valid vertex", 2, "from 1 to 2");
    refused("g.gr", "p sp 2 2\na 1 2 7\n", "promises 2 edges, but 1 are listed", 0, "");
    refused("g.gr", "a 1 2 7\np sp 2 2\n", "a `p` line that is not the first", 2, "");
    refused("g.gr", "p max 2 2\n", "`max` is not a valid problem", 1, "sp");
    refused("g.gr", "e 1 2\n", "`e` is not a valid kind of line", 1, "a, c or p");
    refused("g.gr", "a 1 2\n", "the line ends before the weight", 1, "");
}

#[test]
fn matrix_market_graphs() {
    let banner = "%%MatrixMarket matrix coordinate pattern symmetric\n% c\n";
    let graph = parse("g.mtx", format!("{banner}3 3 2\n2 1\n3 3\n")).unwrap();
    assert_eq!((graph.vertices(), edges(&graph)), (3, vec![(0, 1), (1, 0), (2, 2)]));
    let general = "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 5\n";
    assert_eq!(parse("g.mtx", general).unwrap().weights(), Some(&[5][..]));
    let none = parse("g.mtx", "1 2\n2 3\n").unwrap_err().to_string();
    assert!(none.contains("has no banner") && none.contains("%%MatrixMarket matrix coordinate"), "{none}");
    refused("g.mtx", &format!("{banner}3 2 2\n"), "`2` is not a valid number of columns", 3, "from 3 to 3");
    refused("g.mtx", &format!("{banner}3 3 2\n4 1\n"), "`4` is not a valid row", 4, "from 1 to 3");
    refused("g.mtx", &format!("{banner}3 3 2\n2 1\n"), "promises 2 entries, but 1", 0, "");
    refused("g.mtx", banner, "the size line", 0, "");
    let array = "%%MatrixMarket matrix array real general\n";
    refused("g.mtx", array, "`array` is not a valid layout", 1, "coordinate");
    assert!(parse("g.mtx", array).unwrap_err().to_string().contains("dense matrix"));
}

fn ignoring(name: &str, content: &str) -> Result<Graph, Diagnostic> {
    let options = ReadOptions { values: Values::Ignored, ..ReadOptions::default() };
    read_from(name, Cursor::new(content.as_bytes().to_vec()), &options)
}

/// Fields and symmetries of NIST's definition, as weights and as unused values.
#[test]
fn matrix_market_values() {
    let file = |kind: &str, entries: &str| {
        format!("%%MatrixMarket Matrix Coordinate {kind}\n% a\n\n3 3 2\n2\t1{entries}\n% b\n3 2{entries}\n")
    };
    let (one_way, both) = (vec![(1, 0), (2, 1)], vec![(0, 1), (1, 0), (1, 2), (2, 1)]);
    // Field and symmetry, an entry's value, edges, and its weight if it is one.
    let cases = [
        ("pattern general", "", &one_way, Ok(None)),
        ("pattern symmetric", "", &both, Ok(None)),
        ("integer general", " 5", &one_way, Ok(Some(5))),
        ("integer symmetric", "\t5", &both, Ok(Some(5))),
        ("real general", " 5.0", &one_way, Ok(Some(5))),
        ("REAL Symmetric", " 5.0e+02", &both, Ok(Some(500))),
        ("real general", " 2.5D1", &one_way, Ok(Some(25))),
        ("real symmetric", " 0.5", &both, Err("`0.5` is not a valid value")),
        ("real symmetric", " -2.0", &both, Err("`-2.0` is not a valid value")),
        ("integer general", " -1", &one_way, Err("`-1` is not a valid value")),
        ("integer general", " 4294967296", &one_way, Err("`4294967296` is not a valid value")),
        ("real skew-symmetric", " 1.5", &both, Err("negative on one side")),
        ("integer skew-symmetric", " 1", &both, Err("negative on one side")),
        ("complex general", " 1.5 -2", &one_way, Err("complex values are not weights")),
        ("complex hermitian", " 1.5 -2", &both, Err("complex values are not weights")),
    ];
    for (kind, entry, expected, weight) in cases {
        let text = file(kind, entry);
        let graph = ignoring("g.mtx", &text).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!((&edges(&graph), graph.weights()), (expected, None), "{kind}");
        match (parse("g.mtx", text), weight) {
            (Ok(graph), Ok(weight)) => {
                assert_eq!(&edges(&graph), expected, "{kind}");
                assert_eq!(graph.weights().map(|all| all[0]), weight, "{kind}");
            }
            (Err(fault), Err(says)) => assert!(fault.to_string().contains(says), "{kind}: {fault}"),
            (other, _) => panic!("{kind}: {other:?}"),
        }
    }
    // Combinations that the definition excludes, and invalid values.
    for (kind, says) in [
        ("pattern skew-symmetric", "`skew-symmetric` is not a valid symmetry"),
        ("real hermitian", "`hermitian` is not a valid symmetry"),
    ] {
        assert!(ignoring("g.mtx", &file(kind, " 1")).unwrap_err().to_string().contains(says), "{kind}");
    }
    for (kind, entry, says) in [
        ("real general", " x", "`x` is not a valid value"),
        ("real general", "", "ends before the value"),
        ("real general", " 1 2", "more fields than `row column value`"),
        ("complex general", " 1", "ends before the value"),
        ("pattern general", " 1", "more fields than `row column`"),
    ] {
        assert!(
            ignoring("g.mtx", &file(kind, entry)).unwrap_err().to_string().contains(says),
            "{kind}{entry}"
        );
    }
}

/// Lists with a value, followed by a time as in KONECT; comments of both kinds, tabs.
#[test]
fn lists_with_values() {
    let weighted = [
        ("g.txt", "% a\n# b\n7\t9\t4\n 9 7 3\n"),
        ("g.tsv", "7\t9\t4.0\t1082040961\n9\t7\t3\t1082040962.5\n"),
        ("g.csv", "from,to,weight\n7,9,4\n9,7,3\n"),
        ("g.csv", "# a\n7|9|4\n9|7|3e0\n"),
    ];
    for (name, text) in weighted {
        let graph = parse(name, text).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!((edges(&graph), graph.weights()), (vec![(0, 1), (1, 0)], Some(&[4, 3][..])), "{text}");
        let graph = ignoring(name, text).unwrap();
        assert_eq!((edges(&graph), graph.weights()), (vec![(0, 1), (1, 0)], None), "{text}");
    }
    for (name, text) in [("g.txt", "7 9 -0.25\n9 7 1e-3\n"), ("g.csv", "7,9,-0.25\n9,7,.5\n")] {
        assert_eq!(ignoring(name, text).unwrap().edges(), 2, "{text}");
        assert!(
            parse(name, text).unwrap_err().to_string().contains("`-0.25` is not a valid weight"),
            "{text}"
        );
    }
    assert_eq!(ignoring("g.graph", "2 1 1\n2 0.5\n1 0.5\n").unwrap().edges(), 2);
    assert_eq!(ignoring("g.gr", "a 1 2 0.5\n").unwrap().edges(), 1);
    // A list of neighbours is not a list of edges.
    refused("g.txt", "1 2 3\n2 1\n", "the line has 2 fields, those before have 3", 2, "");
    assert!(ignoring("g.txt", "1 2 x\n").unwrap_err().to_string().contains("`x` is not a valid weight"));
}

#[test]
fn compression_is_seen_in_the_content_and_the_format_in_the_name() {
    let text = b"1 2\n2 3\n".repeat(1000);
    let plain = parse("g.txt", text.clone()).unwrap();
    assert_eq!(plain.edges(), 2000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(parse("g.txt.gz", gzip.clone()).unwrap(), plain);
    assert_eq!(parse("g.txt", gzip.clone()).unwrap(), plain);
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&text).unwrap();
    assert_eq!(parse("g.txt.xz", xz.finish().unwrap()).unwrap(), plain);
    let zstd = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(parse("g.txt.zst", zstd).unwrap(), plain);
    let cut = parse("g.txt.gz", &gzip[..gzip.len() / 2]).unwrap_err();
    assert!(cut.what.contains("cannot read `g.txt.gz`"), "{cut}");
    let unknown = parse("g.bin", "1 2\n").unwrap_err();
    assert!(unknown.allowed.contains(&"metis".to_owned()), "{unknown}");
    let missing = read(&PathBuf::from("no/such.txt"), &ReadOptions::default()).unwrap_err();
    assert!(missing.what.contains("no/such.txt"), "{missing}");
}

/// Returns a file of the shared data, or `None` with a message on stdout.
fn data(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join("graphs").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no data ({name})");
    None
}

/// Statistics from the data's own list: vertices with edges, rows, distinct undirected edges (including loops),
/// largest out-degree, and largest degree: neighbours if both directions are listed, otherwise distinct edges out and
/// in, without loops.
#[test]
fn statistics_of_real_graphs() {
    let files: [(&str, [usize; 5]); 11] = [
        ("graphbig_small/edge.csv", [998, 29_790, 14_895, 99, 99]),
        ("musae/DE_edges.csv", [9_498, 153_138, 153_138, 1_260, 4_259]),
        ("musae/facebook_edges.csv", [22_470, 171_002, 171_002, 472, 709]),
        ("networkit/PGPgiantcompo.graph", [10_680, 48_632, 24_316, 205, 205]),
        ("networkit/astro-ph.graph", [16_046, 242_502, 121_251, 360, 360]),
        ("networkit/power.graph", [4_941, 13_188, 6_594, 19, 19]),
        ("networkit/wiki-Vote.txt", [7_115, 103_689, 100_762, 893, 1_167]),
        ("networkit/wing.graph", [62_032, 243_088, 121_544, 4, 4]),
        ("roads/bremen_dist.gr", [40_461, 86_475, 47_320, 5, 10]),
        ("roads/graph_ballard.gr", [7_026, 16_510, 16_505, 6, 9]),
        ("snap/soc-Slashdot0902.txt.gz", [82_168, 948_464, 582_533, 2_511, 5_062]),
    ];
    for (name, expected) in files {
        let Some(path) = data(name) else { continue };
        let graph = read(&path, &ReadOptions::default()).unwrap_or_else(|refused| panic!("{refused}"));
        let distinct: BTreeSet<(u32, u32)> = edges(&graph).into_iter().collect();
        let (mut degrees, mut joined, mut undirected) =
            (vec![0_usize; graph.vertices()], BTreeSet::new(), BTreeSet::new());
        for &(from, to) in &distinct {
            joined.extend([from, to]);
            undirected.insert((from.min(to), from.max(to)));
            if from != to {
                degrees[from as usize] += 1;
                degrees[to as usize] += 1;
            }
        }
        let both_ways = distinct.iter().all(|&(from, to)| distinct.contains(&(to, from)));
        let degree = degrees.iter().max().map_or(0, |most| if both_ways { most / 2 } else { *most });
        let out = graph.hub().map_or(0, |hub| graph.degree(hub));
        assert_eq!([joined.len(), graph.edges(), undirected.len(), out, degree], expected, "{name}");
    }
    if let Some(path) = data("networkit/astro-ph.graph") {
        // The header counts 16,706 vertices: those without edges stay.
        assert_eq!(read(&path, &ReadOptions::default()).unwrap().vertices(), 16_706);
    }
}
