//! Every program against a plain sequential result, and the common properties of all.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;
use proto::simt::{InstKind, Tape};

use super::betw::Betweenness;
use super::bfs_atomic::BfsAtomic;
use super::bfs_data::BfsData;
use super::bfs_frontier::BfsFrontier;
use super::bfs_topo::BfsTopo;
use super::colour::Colour;
use super::degree::Degree;
use super::rank::{DAMPING, Rank};
use super::sssp::Sssp;
use super::{ENTRIES, INFINITY};
use crate::graph::{Edges, Graph, Keep, Rmat};
use crate::program::{Code, Slots, census, open};

/// Generates small graphs of any shape: directed or both ways, with isolated vertices.
fn graphs() -> impl Strategy<Value = (Arc<Graph>, usize)> {
    (2..90_u32, any::<bool>()).prop_flat_map(|(n, both)| {
        let edges = proptest::collection::vec((0..n, 0..n), 0..400);
        (edges, 0..n as usize).prop_map(move |(ends, root)| {
            let keep = if both { Keep::Both } else { Keep::Simple };
            (Arc::new(Graph::new(n as usize, &Edges { ends, weights: None }, keep)), root)
        })
    })
}

/// Returns a graph with high-degree vertices, beyond a warp and beyond a thread's local list.
fn large() -> Arc<Graph> {
    Arc::new(Rmat::graph500(12, 12, 7).generate())
}

fn run<C: Code>(code: C) -> Slots<C> {
    let mut program = Slots::new(code);
    let counted = census(&mut program);
    assert_eq!(counted.uneven_blocks, 0);
    program
}

/// Returns levels computed with a queue.
fn levels(graph: &Graph, root: usize) -> Vec<u32> {
    let mut level = vec![INFINITY; graph.vertices()];
    level[root] = 0;
    let mut queue = VecDeque::from([root]);
    while let Some(v) = queue.pop_front() {
        for &w in graph.neighbours(v) {
            if level[w as usize] == INFINITY {
                level[w as usize] = level[v] + 1;
                queue.push_back(w as usize);
            }
        }
    }
    level
}

fn all_searches(graph: &Arc<Graph>, root: usize) -> Vec<(&'static str, Vec<u32>)> {
    let graph = || Arc::clone(graph);
    vec![
        ("bfs1", run(BfsTopo::new("bfs1", graph(), root, false)).code().levels.clone()),
        ("bfs2", run(BfsTopo::new("bfs2", graph(), root, true)).code().levels.clone()),
        ("bfs3", run(BfsFrontier::new(graph(), root)).code().levels.clone()),
        ("bfs4", run(BfsData::new("bfs4", graph(), root, false)).code().levels.clone()),
        ("bfs5", run(BfsData::new("bfs5", graph(), root, true)).code().levels.clone()),
        ("bfs6", run(BfsAtomic::new(graph(), root)).code().levels.clone()),
        ("sssp3", run(Sssp::new(graph(), root)).code().costs.clone()),
    ]
}

/// Returns costs computed by Dijkstra's algorithm.
fn costs(graph: &Graph, root: usize) -> Vec<u32> {
    let weights = graph.weights().unwrap();
    let mut cost = vec![INFINITY; graph.vertices()];
    let mut heap = BinaryHeap::from([(Reverse(0), root)]);
    while let Some((Reverse(at), v)) = heap.pop() {
        if at < cost[v] {
            cost[v] = at;
            heap.extend(graph.row(v).map(|e| (Reverse(at + weights[e]), graph.targets()[e] as usize)));
        }
    }
    cost
}

/// Returns dependencies of all vertices on one source, by Brandes' algorithm in order of distance.
fn dependencies(graph: &Graph, source: usize) -> Vec<f64> {
    let level = levels(graph, source);
    let mut order: Vec<usize> = (0..graph.vertices()).filter(|&v| level[v] != INFINITY).collect();
    order.sort_by_key(|&v| level[v]);
    let (mut sigma, mut delta) = (vec![0.0; level.len()], vec![0.0; level.len()]);
    sigma[source] = 1.0;
    let onward = |v: usize| graph.neighbours(v).iter().map(|&w| w as usize);
    for &v in &order {
        onward(v).filter(|&w| level[w] == level[v] + 1).for_each(|w| sigma[w] += sigma[v]);
    }
    for &v in order.iter().rev() {
        for w in onward(v).filter(|&w| level[w] == level[v] + 1) {
            delta[v] += sigma[v] / sigma[w] * (1.0 + delta[w]);
        }
    }
    delta[source] = 0.0;
    delta
}

fn assert_near(got: &[f32], want: &[f64], what: &str) {
    for (v, (got, want)) in got.iter().zip(want).enumerate() {
        // Single precision, summed over at most some thousand edges.
        assert!(
            (f64::from(*got) - want).abs() <= 1e-4 * want.abs() + 1e-6,
            "{what} of {v}: {got}, not {want}"
        );
    }
}

fn assert_proper(graph: &Graph, colours: &[u32]) {
    for v in 0..graph.vertices() {
        assert_ne!(colours[v], INFINITY, "vertex {v} has no colour");
        for &w in graph.neighbours(v) {
            assert_ne!(colours[v], colours[w as usize], "{v} and {w}");
        }
    }
}

/// Returns PageRank by its definition, in double precision.
fn ranks(graph: &Graph, iterations: u32) -> Vec<f64> {
    let n = graph.vertices();
    let mut rank = vec![1.0 / n as f64; n];
    for _ in 0..iterations {
        let mut next = vec![f64::from(1.0 - DAMPING) / n as f64; n];
        for (v, rank) in rank.iter().enumerate() {
            for &w in graph.neighbours(v) {
                next[w as usize] += f64::from(DAMPING) * rank / graph.degree(v) as f64;
            }
        }
        rank = next;
    }
    rank
}

fn degrees_in(graph: &Graph) -> Vec<u32> {
    let mut degrees = vec![0; graph.vertices()];
    graph.targets().iter().for_each(|&w| degrees[w as usize] += 1);
    degrees
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn searches_find_the_levels((graph, root) in graphs()) {
        let expected = levels(&graph, root);
        for (name, found) in all_searches(&graph, root) {
            prop_assert_eq!(&found, &expected, "{}", name);
        }
    }

    #[test]
    fn paths_are_dijkstras((graph, root) in graphs(), seed in 0..9_u64) {
        let graph = Arc::new(Graph::clone(&graph).weighted(seed, 20));
        let found = run(Sssp::new(Arc::clone(&graph), root));
        prop_assert_eq!(&found.code().costs, &costs(&graph, root));
    }

    #[test]
    fn betweenness_sums_dependencies((graph, root) in graphs()) {
        let n = graph.vertices() as u32;
        let sources = vec![root as u32, (root as u32 + 1) % n];
        let found = run(Betweenness::new(Arc::clone(&graph), sources.clone()));
        let each: Vec<Vec<f64>> = sources.iter().map(|&s| dependencies(&graph, s as usize)).collect();
        let sums: Vec<f64> = (0..n as usize).map(|v| each[0][v] + each[1][v]).collect();
        assert_near(&found.code().centrality, &sums, "centrality");
    }

    #[test]
    fn neighbours_differ_in_colour((graph, _) in graphs(), seed in 0..9_u64) {
        // Colouring needs undirected graphs.
        let ends = (0..graph.vertices()).flat_map(|v| graph.neighbours(v).iter().map(move |&w| (v as u32, w)));
        let both = Edges { ends: ends.collect(), weights: None };
        let both = Arc::new(Graph::new(graph.vertices(), &both, Keep::Both));
        let found = [false, true].map(|by_warp| run(Colour::new(Arc::clone(&both), seed, INFINITY, by_warp)));
        assert_proper(&both, &found[0].code().colours);
        assert_proper(&both, &found[1].code().colours);
    }

    #[test]
    fn degrees_and_ranks_are_those_of_the_definition((graph, _) in graphs(), iterations in 1..6_u32) {
        let found = run(Degree::new(Arc::clone(&graph)));
        prop_assert_eq!(&found.code().degrees, &degrees_in(&graph));
        let found = run(Rank::new(&graph, iterations));
        assert_near(&found.code().ranks, &ranks(&graph, iterations), "rank");
    }
}

#[test]
fn answers_hold_on_a_graph_of_many_blocks_and_great_degrees() {
    let graph = large();
    let root = graph.hub().unwrap();
    assert!(graph.degree(root) > 32 * 32, "{}", graph.degree(root));
    let expected = levels(&graph, root);
    for (name, found) in all_searches(&graph, root) {
        assert_eq!(found, expected, "{name}");
    }
    for by_warp in [false, true] {
        assert_proper(&graph, &run(Colour::new(large(), 3, INFINITY, by_warp)).code().colours);
    }
    let found = run(Betweenness::new(large(), vec![root as u32]));
    assert_near(&found.code().centrality, &dependencies(&graph, root), "centrality");
    let weighted = Arc::new(Graph::clone(&graph).weighted(1, 100));
    let found = run(Sssp::new(Arc::clone(&weighted), root));
    assert_eq!(found.code().costs, costs(&weighted, root));
    assert_near(&run(Rank::new(&graph, 3)).code().ranks, &ranks(&graph, 3), "rank");
}

/// Runs every program of the list on a small graph, with each piece of its instructions.
fn each_piece(options: &str, mut piece: impl FnMut(&str, &dyn crate::program::Program, &Tape)) {
    for entry in ENTRIES {
        let mut programs = open(&[format!("{}:{options}", entry.name)]).unwrap();
        let program = programs[0].as_mut();
        while let Some(kernel) = program.launch() {
            for block in 0..kernel.blocks {
                for warp in 0..kernel.threads.div_ceil(32) {
                    program.start(5, crate::program::WarpAt::new(block, warp, kernel.threads));
                    let mut tape = Tape::default();
                    while program.step(5, 0, &mut tape) {
                        piece(entry.name, program, &tape);
                        tape.clear();
                    }
                    piece(entry.name, program, &tape);
                }
            }
        }
    }
}

#[test]
fn instructions_are_well_formed_and_addresses_are_inside_allocations() {
    for options in ["scale=7,degree=5", "scale=5,degree=1,mirrored=no", "scale=10,seed=3"] {
        each_piece(options, |name, program, tape| {
            assert!(!tape.insts.is_empty());
            let mut next = 0;
            for inst in &tape.insts {
                assert!(inst.mask != 0 && inst.pc != 0 && inst.count != 0, "{name}: {inst:?}");
                assert!(inst.count == 1 || inst.kind == InstKind::Alu, "{name}: {inst:?}");
                assert_eq!(inst.addresses, next, "{name}: {inst:?}");
                if matches!(inst.kind, InstKind::Alu | InstKind::Sfu | InstKind::Barrier) {
                    continue;
                }
                let from = next as usize;
                next += inst.mask.count_ones();
                for address in &tape.addresses[from..next as usize] {
                    let inside = program.space().allocations().iter().any(|a| {
                        (a.base..a.base + a.bytes).contains(address)
                            && address + u64::from(inst.width) <= a.base + a.bytes
                            && (address - a.base).is_multiple_of(u64::from(inst.width))
                    });
                    assert!(inside, "{name}: {address:#x} of {inst:?} is in no array");
                }
            }
            assert_eq!(next as usize, tape.addresses.len());
        });
    }
}

#[test]
fn an_address_of_an_instruction_means_one_instruction() {
    use std::collections::BTreeMap;
    let mut known = BTreeMap::new();
    each_piece("scale=9,degree=12,seed=2", |name, _, tape| {
        for inst in &tape.insts {
            let what = (inst.kind, inst.width, inst.to, inst.from);
            let first = *known.entry((name.to_owned(), inst.pc)).or_insert(what);
            assert_eq!(first, what, "{name}, {}", inst.pc);
        }
    });
    assert!(known.len() > ENTRIES.len() * 10);
}

#[test]
fn the_same_seed_gives_the_same_instructions() {
    for entry in ENTRIES {
        let digest = |options: &str| {
            let mut programs = open(&[format!("{}:scale=8,{options}", entry.name)]).unwrap();
            census(programs[0].as_mut()).digest
        };
        assert_eq!(digest("seed=1"), digest("seed=1"), "{}", entry.name);
        assert_ne!(digest("seed=1"), digest("seed=2"), "{}", entry.name);
    }
}

#[test]
fn kernels_follow_from_levels() {
    // A path of nine vertices: levels 0 to 8, and the last finds nothing new.
    let ends = (0..8).map(|v| (v, v + 1)).collect();
    let path = || Arc::new(Graph::new(9, &Edges { ends: Vec::clone(&ends), weights: None }, Keep::Both));
    let kernels = |mut program: Box<dyn crate::program::Program>| census(program.as_mut()).kernels.len();
    assert_eq!(kernels(Box::new(Slots::new(BfsTopo::new("bfs1", path(), 0, false)))), 9);
    assert_eq!(kernels(Box::new(Slots::new(BfsFrontier::new(path(), 0)))), 2 * 9);
    assert_eq!(kernels(Box::new(Slots::new(BfsData::new("bfs4", path(), 0, false)))), 9);
    // One to begin, nine outwards, eight back, one to sum: 2 L + 1 with L = 9, which gives Table II's 11 for L = 5.
    assert_eq!(kernels(Box::new(Slots::new(Betweenness::new(path(), vec![0])))), 2 * 9 + 1);
    assert_eq!(kernels(Box::new(Slots::new(Rank::new(&path(), 26)))), 52);
}

/// Values of a file are weights if paths are summed; other programs accept any values. Both report it.
#[test]
fn values_of_a_file_are_weights_where_they_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let real = file("g.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 2 -2.0\n");
    let list = file("g.txt", "1 2 5\n2 3 7\n");
    let notes = |text: String| open(&[text]).map(|programs| programs[0].notes().join("; "));
    for entry in ENTRIES.iter().filter(|entry| entry.name != "sssp3") {
        for path in [&real, &list] {
            let said =
                notes(format!("{}:graph={path}", entry.name)).unwrap_or_else(|fault| panic!("{fault}"));
            assert!(said.contains("3 vertices") && said.contains("are not used"), "{}: {said}", entry.name);
        }
    }
    let said = notes(format!("sssp3:graph={list}")).unwrap();
    assert!(said.contains("are their weights"), "{said}");
    let refused = notes(format!("sssp3:graph={real}")).unwrap_err().to_string();
    assert!(
        refused.contains("`0.5` is not a valid value") && refused.contains("scale the values"),
        "{refused}"
    );
    // Side by side, each program has its required graph.
    let both = open(&[format!("bfs1:graph={list}"), format!("sssp3:graph={list}")]).unwrap();
    let said: Vec<String> = both.iter().flat_map(|program| program.notes().to_vec()).collect();
    assert!(said.iter().any(|note| note.contains("are not used")), "{said:?}");
    assert!(said.iter().any(|note| note.contains("are their weights")), "{said:?}");
}
