//! Executed programs against plain programs, and the accesses that a watcher receives against the counts of their
//! bodies.

use nest::executed::{Bfs, Executed, Nn, Summary, Watch, Wc};
use nest::{Counts, Section};
use std::collections::{BTreeMap, VecDeque};

/// Watcher that ignores everything.
struct Nobody;

impl Watch for Nobody {
    fn microblock(&mut self, _: bool) {}
    fn piece(&mut self) {}
    fn body(&mut self, _: usize, _: u64, _: u64) {}
    fn access(&mut self, _: usize, _: u64, _: bool) {}
}

/// Compares accesses with the counts of bodies, piece by piece.
struct Account {
    bodies: Vec<Counts>,
    bytes: Vec<(u64, Section)>,
    /// Counts of the current piece: from bodies, and loads and stores received.
    said: Counts,
    heard: [u64; 2],
    /// Pieces of each microblock, and whether they may run at once.
    microblocks: Vec<(u64, bool)>,
    all: Counts,
}

impl Account {
    fn close(&mut self) {
        assert_eq!([self.said.loads, self.said.stores], self.heard, "piece {:?}", self.microblocks.last());
        self.all += self.said;
        (self.said, self.heard) = (Counts::default(), [0, 0]);
    }
}

impl Watch for Account {
    fn microblock(&mut self, is_split: bool) {
        assert!(self.microblocks.last().is_none_or(|(pieces, _)| *pieces > 0), "a microblock without pieces");
        self.close();
        self.microblocks.push((0, is_split));
    }

    fn piece(&mut self) {
        self.close();
        self.microblocks.last_mut().expect("a microblock").0 += 1;
    }

    fn body(&mut self, body: usize, entries: u64, passes: u64) {
        assert!(entries > 0 && entries <= passes, "body {body}: {entries} of {passes}");
        self.said += self.bodies[body].times(passes);
    }

    fn access(&mut self, array: usize, byte: u64, write: bool) {
        let (bytes, section) = self.bytes[array];
        assert!(byte < bytes && !(write && section == Section::Input), "array {array}, byte {byte}");
        self.heard[usize::from(write)] += 1;
    }
}

fn account(program: &dyn Executed) -> Account {
    let mut account = Account {
        bodies: program.bodies().iter().map(|body| body.own).collect(),
        bytes: program.arrays().iter().map(|array| (array.bytes, array.section)).collect(),
        said: Counts::default(),
        heard: [0, 0],
        microblocks: Vec::new(),
        all: Counts::default(),
    };
    program.execute(&mut account);
    account.close();
    let serial = account.microblocks.iter().filter(|(_, is_split)| !is_split).count() as u64;
    let microblocks = account.microblocks.len() as u64;
    assert_eq!(Summary::of(program), Summary { microblocks, serial, counts: account.all });
    account
}

/// Returns random-looking bits.
fn bits(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn search(nodes: usize, edges: &[(u32, u32)], source: u32) -> Bfs {
    let mut sorted = edges.to_vec();
    sorted.sort_unstable();
    let offset = |node: usize| sorted.partition_point(|(from, _)| (*from as usize) < node) as u32;
    let ends = sorted.iter().map(|(_, to)| *to).collect();
    Bfs::new((0..=nodes).map(offset).collect(), ends, source)
}

/// Returns levels computed with a queue.
fn queued(nodes: usize, edges: &[(u32, u32)], source: u32) -> Vec<i32> {
    let mut next = vec![Vec::new(); nodes];
    edges.iter().for_each(|(from, to)| next[*from as usize].push(*to as usize));
    let mut levels = vec![-1; nodes];
    let mut queue = VecDeque::from([source as usize]);
    levels[source as usize] = 0;
    while let Some(node) = queue.pop_front() {
        for to in &next[node] {
            if levels[*to] < 0 {
                levels[*to] = levels[node] + 1;
                queue.push_back(*to);
            }
        }
    }
    levels
}

/// Two levels after the source, and an unreachable node. The last level finds nothing: with the beginning 1 + 3 x 2
/// microblocks, of which one is serial.
#[test]
fn levels_of_a_small_graph() {
    let search = search(5, &[(0, 1), (0, 2), (1, 2), (2, 3), (3, 0)], 0);
    assert_eq!(search.levels(&mut Nobody), [0, 1, 1, 2, -1]);
    let account = account(&search);
    let serial: Vec<bool> = account.microblocks.iter().map(|(_, is_split)| !is_split).collect();
    assert_eq!(serial, [true, false, false, false, false, false, false]);
    // By hand: the marks of 5 nodes are checked twice per level, in 3 levels; 4 nodes are visited, 3 of them found; 5
    // edges are followed, 4 of which lead to nodes that were unvisited at the time (1 and 2 from 0; 3 from 2; the
    // edges from 1 to 2 and from 3 to 0 find nothing new).
    assert_eq!(account.all.loads, 3 * 2 * 5 + 4 * 2 + 5 * 2 + 3);
    assert_eq!(account.all.stores, 5 * 4 + 3 + 4 + 3 * 2 + 3 * 3);
}

#[test]
fn levels_are_those_of_a_queue() {
    let mut state = 5;
    for (nodes, count) in [(1, 0), (40, 60), (3_000, 9_000), (40_000, 100_000)] {
        let mut node = || (bits(&mut state) % nodes) as u32;
        let edges: Vec<(u32, u32)> = (0..count).map(|_| (node(), node())).collect();
        let search = search(nodes as usize, &edges, 0);
        assert_eq!(search.levels(&mut Nobody), queued(nodes as usize, &edges, 0));
        account(&search);
    }
}

fn data(path: &str) -> Option<Vec<u8>> {
    let root = std::env::var("NANDSCAPE_DATA")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data").to_owned());
    let found = std::fs::read(format!("{root}/{path}")).ok();
    if found.is_none() {
        println!("skipped: no data");
    }
    found
}

/// The power grid of the western states (METIS: each line has the neighbours of a node, counted from one).
#[test]
fn levels_of_a_real_graph() {
    let Some(text) = data("graphs/networkit/power.graph") else { return };
    let text = String::from_utf8(text).expect("text");
    let mut lines = text.lines().filter(|line| !line.starts_with('%'));
    let nodes: usize =
        lines.next().expect("a header").split(' ').next().expect("nodes").parse().expect("a number");
    let mut edges = Vec::new();
    for (from, line) in lines.take(nodes).enumerate() {
        let neighbours = line.split_whitespace().map(|to| to.parse::<u32>().expect("a node") - 1);
        edges.extend(neighbours.map(|to| (from as u32, to)));
    }
    assert_eq!((nodes, edges.len()), (4_941, 13_188));
    let search = search(nodes, &edges, 0);
    assert_eq!(search.levels(&mut Nobody), queued(nodes, &edges, 0));
    account(&search);
}

/// Compares the nearest with those found by sorting all.
#[test]
fn the_nearest_are_those_of_sorting_all() {
    for (records, count) in [(1, 1), (100, 5), (20_000, 10)] {
        let place = (30.0, 90.0);
        let program = Nn::generate(records, 3, place, count);
        let number = |bytes: &[u8]| -> f32 {
            std::str::from_utf8(bytes).expect("text").trim().parse().expect("a number")
        };
        let distance = |record: &[u8]| {
            let (latitude, longitude) = (number(&record[27..32]), number(&record[33..38]));
            assert!((7.0..=69.0).contains(&latitude) && (0.0..=358.0).contains(&longitude));
            ((latitude - place.0).powi(2) + (longitude - place.1).powi(2)).sqrt()
        };
        let mut sorted: Vec<f32> = program.text().chunks(49).map(distance).collect();
        sorted.sort_by(f32::total_cmp);
        let mut found: Vec<f32> =
            program.nearest(&mut Nobody).iter().map(|(_, distance)| *distance).collect();
        found.sort_by(f32::total_cmp);
        found.iter().zip(&sorted).for_each(|(found, wanted)| assert!((found - wanted).abs() < 1e-3));
        let account = account(&program);
        assert_eq!(account.microblocks.iter().filter(|(_, is_split)| !is_split).count(), 1);
        // Ten characters a record, its distance, and the list: of the worst, and of the bytes of what is put there.
        let puts = (account.all.loads as usize - records * (10 + 1 + count)) / 49;
        assert!(puts >= count.min(records) && puts <= records, "{puts}");
    }
}

fn counted(text: &[u8]) -> BTreeMap<String, u32> {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let mut counts = BTreeMap::new();
    for word in text.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}

fn compare_words(text: Vec<u8>) -> usize {
    let program = Wc::new(text);
    let word =
        |range: std::ops::Range<usize>| String::from_utf8_lossy(&program.text()[range]).to_ascii_lowercase();
    let counts = program.counts(&mut Nobody);
    let found: BTreeMap<String, u32> =
        counts.iter().map(|count| (word(count.word.clone()), count.times)).collect();
    assert_eq!(found.len(), counts.len(), "a word is there once");
    assert_eq!(found, counted(program.text()));
    let account = account(&program);
    assert_eq!(account.microblocks.len(), 4);
    found.len()
}

/// Words at the ends of chunks of 64 KiB belong to the chunk in which they begin.
#[test]
fn words_are_those_of_a_map() {
    compare_words(b"a".to_vec());
    compare_words(b" ".to_vec());
    compare_words(include_bytes!("../../../../../docs/kernels.md").to_vec());
    for shift in 0..12 {
        let text = "the quick brown fox ".bytes().cycle().skip(shift).take((64 << 10) + 9);
        assert!(compare_words(text.collect()) >= 4);
    }
    compare_words(vec![b'x'; 200 << 10]);
    let generated = Wc::generate(300 << 10, 1_000, 11).text().to_vec();
    assert_eq!(generated.len(), 300 << 10);
    let different = compare_words(generated);
    assert!((500..=1_010).contains(&different), "{different}");
}

#[test]
fn words_of_a_real_text() {
    let Some(text) = data("README.md") else { return };
    assert!(compare_words(text) > 100);
}

/// The records of a bucket are contiguous: its piece touches the bytes from its first record to its last.
#[test]
fn a_text_outgrows_the_room_of_its_fullest_bucket() {
    // One word, 1,000 times, is one bucket: 999 records of 12 B from the first to the last.
    let text = "word ".repeat(1_000).into_bytes();
    for (room, outgrows) in [(11_987, true), (11_988, true), (11_989, false), (1 << 20, false)] {
        assert_eq!(Wc::text_outgrows(&text, room), outgrows, "{room}");
    }
    assert!(!Wc::text_outgrows(b"...", 0));
    // The words drawn are those of the generated text: without capital letters, each ending at one byte.
    for (bytes, different, seed) in [(300_000, 1_000, 11), (300_001, 1, 3), (65_537, 70_000, 8)] {
        let made = Wc::generate(bytes, different, seed);
        let at = |room: u64| Wc::outgrows(bytes, different, seed, room);
        // The word cut by the end of the text is not a drawn one: only about it may they disagree.
        let most = (0..).find(|words| !Wc::text_outgrows(made.text(), 12 * words)).expect("a room");
        assert!(!at(12 * most), "{bytes}: {most} records");
        assert!(most < 2 || at(12 * (most - 2)), "{bytes}: {most} records");
    }
}
