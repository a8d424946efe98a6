//! Programs on their data that are too large for an accelerator: refused by their sizes, before their data are made.

use programs::kernels::{OnData, Program, Room, fits, open};
use std::collections::BTreeSet;

fn on_data(text: &str) -> std::sync::Arc<OnData> {
    match &open(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))[0].program {
        Program::Executed(on_data) => on_data.clone(),
        Program::Nest(_) => panic!("{text} is a nest"),
    }
}

/// Page groups that a piece touches, of the piece that touches most.
struct Touched {
    group: u64,
    piece: BTreeSet<(usize, u64)>,
    most: u64,
}

impl Touched {
    fn by(program: &OnData, group: u64) -> u64 {
        let mut touched = Touched { group, piece: BTreeSet::new(), most: 0 };
        program.program().execute(&mut touched);
        nest::executed::Watch::piece(&mut touched);
        touched.most
    }
}

impl nest::executed::Watch for Touched {
    fn microblock(&mut self, _: bool) {}
    fn piece(&mut self) {
        self.most = self.most.max(self.piece.len() as u64);
        self.piece.clear();
    }
    fn body(&mut self, _: usize, _: u64, _: u64) {}
    fn access(&mut self, array: usize, byte: u64, _: bool) {
        self.piece.insert((array, byte / self.group));
    }
}

/// Every program on its data: what is refused before its data are made has in truth a piece that is too large, and what is too large by more than a share
/// is refused. Groups are small, so that small data have many. Of a text only the records of the fullest bucket are counted before.
#[test]
fn programs_that_are_too_large_are_refused_by_their_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = folder.path().join("r.txt");
    let record = format!("{:27} 30.0  90.0{:10}\n", "1950  1  1 12    0 STORM", "");
    assert_eq!(record.len(), 49);
    std::fs::write(&records, record.repeat(9_000)).expect("a file");
    let file = format!("nn:file={}", records.display());
    let all = [
        ("bfs:nodes=60000", 256, 0.95),
        ("bfs:nodes=100000,seed=5,source=77", 1024, 0.95),
        ("bfs:nodes=40000,degree=8", 128, 0.85),
        ("bfs:nodes=30000,degree=20,seed=3", 128, 0.5),
        ("nn:records=20000", 1024, 0.9),
        ("nn:records=4100", 4096, 0.9),
        (file.as_str(), 512, 0.9),
        ("wc:bytes=300kB,words=40", 256, 0.25),
        ("wc:bytes=500kB,words=3,seed=4", 1024, 0.25),
    ];
    for (text, group, share) in all {
        let largest = Touched::by(&on_data(text), group);
        let fits = |groups: u64| fits(text, Room { bytes: groups * group, group });
        fits(largest).unwrap_or_else(|told| panic!("{text} has {largest} groups: {}", told.what));
        assert!(fits(0).is_err(), "{text} is never refused");
        let (mut least, mut above) = (0, largest);
        while above - least > 1 {
            let middle = least.midpoint(above);
            if fits(middle).is_err() { least = middle } else { above = middle }
        }
        assert!(least as f64 >= share * (largest - 1) as f64, "{text}: from {least} on, of {largest}");
    }
    // No graph of 16,000,000 nodes is made: 6 B a node are 1,464 groups of 64 KiB. The sections of FlashAbacus have 1 GiB / 12 = 85 MiB.
    let room = |mib: u64| Room { bytes: mib << 20, group: 64 << 10 };
    let told = fits("bfs:nodes=16000000", room(85)).expect_err("too many");
    assert!(told.what.contains("a piece of `bfs` touches more than 85MiB"), "{}", told.what);
    fits("bfs:nodes=14000000", room(85)).expect("it may fit");
    assert!(fits("bfs:nodes=1", room(85)).expect_err("a value").what.contains("`1`"));
}
