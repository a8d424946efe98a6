//! Sizes against published values, kernels against naive loops.

mod addresses;

use std::collections::BTreeMap;

use proto::simt::{InstKind, LANES, Tape};

use super::eager::Eager;
use super::memory::Store;
use super::model::Model;
use super::network::{Network, Plan, Selection};
use crate::program::{
    Census, Kernel, Program, Slots, WarpAt, census, census_within,
    dnn::{
        eager::work,
        memory::lay_out,
        model::{
            bert::{self, Bert, SIZES},
            gpt2::{self, Gpt2},
            resnet::ResNet,
        },
    },
    launches, open,
};

/// A model of a few operators.
pub(super) struct Few<F: Fn(&mut Eager)> {
    store: Store,
    operators: F,
}

impl<F: Fn(&mut Eager)> Model for Few<F> {
    fn store(&self) -> &Store {
        &self.store
    }
    fn passes(&self) -> u32 {
        1
    }
    fn record(&self, _: u32, eager: &mut Eager) {
        (self.operators)(eager);
    }
}

/// Counts of loads and stores of elements, by byte address.
#[derive(Default, Debug, PartialEq)]
pub(super) struct Traffic {
    pub(super) loads: BTreeMap<u64, u64>,
    pub(super) stores: BTreeMap<u64, u64>,
}

/// Start addresses of the store's tensors, and of the pass's memory.
pub(super) type Bases = Vec<u64>;

pub(super) fn program(plan: Plan) -> Slots<Network> {
    let all = Selection::Range(0..plan.count());
    Slots::new(Network::new(plan, all))
}

/// Runs operators; all elements have `width` bytes.
pub(super) fn traffic(
    store: Store,
    width: u64,
    operators: impl Fn(&mut Eager) + Clone + 'static,
) -> (Traffic, Bases) {
    let again = Few { store: store.clone(), operators: operators.clone() };
    let checked: Census = census(&mut program(Plan::new("few", Box::new(again), 1)));
    assert_eq!(checked.uneven_blocks, 0, "warps of a block pass different barriers");
    let mut program = program(Plan::new("few", Box::new(Few { store, operators }), 1));
    let bases = program.space().allocations().iter().map(|a| a.base).collect();
    let mut traffic = Traffic::default();
    while let Some(kernel) = program.launch() {
        for block in 0..kernel.blocks {
            for warp in 0..kernel.threads.div_ceil(LANES as u32) {
                program.start(0, WarpAt::new(block, warp, kernel.threads));
                follow(&mut program, width, u64::from(kernel.shared), &mut traffic);
            }
        }
    }
    (traffic, bases)
}

fn follow(program: &mut dyn Program, width: u64, shared: u64, traffic: &mut Traffic) {
    let mut tape = Tape::default();
    loop {
        tape.clear();
        let more = program.step(0, 0, &mut tape);
        for inst in &tape.insts {
            let lanes = inst.mask.count_ones() as usize;
            let from = inst.addresses as usize;
            let map = match inst.kind {
                InstKind::Load => &mut traffic.loads,
                InstKind::Store => &mut traffic.stores,
                InstKind::SharedLoad | InstKind::SharedStore => {
                    for offset in &tape.addresses[from..from + lanes] {
                        assert!(offset + u64::from(inst.width) <= shared, "beyond shared memory: {offset}");
                        assert!(offset.is_multiple_of(u64::from(inst.width)), "not aligned: {offset}");
                    }
                    continue;
                }
                _ => continue,
            };
            for address in &tape.addresses[from..from + lanes] {
                assert!(address.is_multiple_of(u64::from(inst.width)), "not aligned: {address}");
                // Numbers of rows are wider than elements.
                let step = width.min(u64::from(inst.width));
                for part in (0..u64::from(inst.width)).step_by(step as usize) {
                    *map.entry(address + part).or_default() += 1;
                }
            }
        }
        if !more {
            return;
        }
    }
}

// Memory within a pass.

fn plans() -> [Plan; 3] {
    [
        Plan::new("bert", Box::new(Bert::new(SIZES[3].1, 77, 4)), 1),
        Plan::new("gpt2", Box::new(Gpt2::new(gpt2::SIZES[0].1, 3, 4, 4)), 1),
        Plan::new("resnet50", Box::new(ResNet::new(2, 64, 4)), 1),
    ]
}

#[test]
fn no_two_tensors_that_live_at_once_overlap() {
    for plan in plans() {
        for number in 0..plan.model.passes() {
            let pass = plan.pass(number);
            for (n, a) in pass.places.iter().enumerate() {
                assert!(a.offset.is_multiple_of(512) && a.offset + a.bytes <= pass.bytes);
                for b in &pass.places[n + 1..] {
                    let apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
                    assert!(apart || a.last < b.first || b.last < a.first, "{}: {a:?} {b:?}", plan.name);
                }
            }
        }
    }
}

#[test]
fn memory_is_used_again() {
    for plan in plans() {
        let pass = plan.pass(0);
        let all: u64 = pass.places.iter().map(|place| place.bytes).sum();
        // The tensors alive at the busiest kernel need this much in any case.
        let live = |at: usize| {
            let lives = pass.places.iter().filter(|p| (p.first..=p.last).contains(&at));
            lives.map(|place| place.bytes).sum::<u64>()
        };
        let least = (0..pass.tasks.len()).map(live).max().unwrap();
        assert!(pass.bytes >= least && pass.bytes < 2 * least, "{}: {} for {least}", plan.name, pass.bytes);
        assert!(pass.bytes * 4 < all, "{}: {} of {all}", plan.name, pass.bytes);
    }
}

#[test]
fn a_chain_takes_turns_in_two_pieces() {
    let mut store = Store::default();
    let x = store.buffer("x", &[1000], 4);
    let mut eager = Eager::new(&store);
    let mut last = x;
    for _ in 0..6 {
        last = eager.map("relu", &[&last], 4, work::ONE);
    }
    let pass = lay_out(eager);
    let offsets: Vec<u64> = pass.places.iter().map(|place| place.offset).collect();
    assert_eq!((offsets, pass.bytes), (vec![0, 4096, 0, 4096, 0, 4096], 8192));
}

// Models against published values.

fn size<T: Copy>(sizes: &[(&str, T)], name: &str) -> T {
    sizes.iter().find(|(known, _)| *known == name).unwrap().1
}

fn plan(model: impl Model + 'static) -> Plan {
    Plan::new("model", Box::new(model), 1)
}

fn multiply_adds(plan: &Plan, pass: u32) -> u64 {
    plan.pass(pass).tasks.iter().map(|task| task.multiply_adds()).sum()
}

#[test]
fn parameters_are_the_published_ones() {
    // torchvision: ResNet50_Weights, `num_params`.
    assert_eq!(ResNet::new(1, 224, 4).store().parameters(), 25_557_032);
    // HuggingFace's counts of the released checkpoints, with the output tied to the word embeddings.
    let gpt2 = |name| Gpt2::new(size(gpt2::SIZES, name), 1, 1, 4).store().parameters();
    assert_eq!(
        ["small", "medium", "large", "xl"].map(gpt2),
        [124_439_808, 354_823_168, 774_030_080, 1_557_611_200]
    );
    // Turc et al. 2019: 4.4, 11.2, 28.8, 41.4 million; bert-base 109,482,240, bert-large 335,141,888 in HuggingFace's count.
    // The classifier has three labels.
    let bert = |name| {
        let config = size(bert::SIZES, name);
        Bert::new(config, 128, 4).store().parameters() - 3 * (config.hidden + 1)
    };
    let expected = [4_385_920, 11_170_560, 28_763_648, 41_373_184, 109_482_240, 335_141_888];
    assert_eq!(["tiny", "mini", "small", "medium", "base", "large"].map(bert), expected);
}

#[test]
fn resnet_multiplies_four_billion_times() {
    // He et al., Table 1: 3.8 x 10^9 with the stride in the first convolution of a block; torchvision's has it in the
    // second, 4.09 x 10^9 (`_ops` = 4.089).
    let of_image = multiply_adds(&plan(ResNet::new(1, 224, 4)), 0);
    assert!((4_085_000_000..4_095_000_000).contains(&of_image), "{of_image}");
    assert_eq!(multiply_adds(&plan(ResNet::new(3, 224, 4)), 0), 3 * of_image);
}

#[test]
fn transformers_multiply_as_their_formulas_say() {
    let (hidden, sequence) = (512, 100);
    let bert = plan(Bert::new(size(bert::SIZES, "medium"), sequence, 4));
    // A layer: four square products and two with four times the width; scores and context.
    let layer = sequence * 12 * hidden * hidden + 2 * sequence * sequence * hidden;
    assert_eq!(multiply_adds(&bert, 0), 8 * layer + hidden * hidden + 3 * hidden);
    let hidden = 768;
    let gpt2 = plan(Gpt2::new(size(gpt2::SIZES, "small"), 5, 4, 4));
    for (pass, rows, length) in [(0, 5, 5), (1, 1, 6), (3, 1, 8)] {
        let layer = rows * 12 * hidden * hidden + 2 * rows * length * hidden;
        assert_eq!(multiply_adds(&gpt2, pass), 12 * layer + rows * hidden * 50_257, "{pass}");
    }
}

#[test]
fn kernels_are_those_of_eager_mode() {
    // Three of the mask, six of the embeddings, seventeen per layer, three at the end.
    let bert = plan(Bert::new(size(bert::SIZES, "medium"), 128, 4));
    assert_eq!(bert.count(), 3 + 6 + 17 * 8 + 3);
    // Around the layers: seven before, three embeddings, two at the end, fifteen to choose a word. A layer has 26,
    // two of which append new keys and values to old ones, which the first pass lacks. With one row, merging heads
    // copies nothing.
    let gpt2 = plan(Gpt2::new(size(gpt2::SIZES, "small"), 1, 100, 4));
    assert_eq!(gpt2.pass(0).tasks.len(), 27 + 24 * 12);
    assert_eq!(gpt2.pass(1).tasks.len(), 27 + 26 * 12);
    assert_eq!(gpt2.count(), 27 + 24 * 12 + 99 * (27 + 26 * 12));
    let longer = plan(Gpt2::new(size(gpt2::SIZES, "small"), 9, 2, 4));
    assert_eq!(longer.pass(0).tasks.len(), 27 + 25 * 12);
    // 53 convolutions and normalisations, 49 rectifiers, 16 sums, two pools, one product.
    assert_eq!(plan(ResNet::new(1, 224, 4)).count(), 53 + 53 + 49 + 16 + 2 + 1);
}

#[test]
fn shapes_of_a_step_follow_its_position() {
    let gpt2 = plan(Gpt2::new(size(gpt2::SIZES, "small"), 1, 90, 4));
    let grid = |pass: u32, name: &str| {
        let tasks = gpt2.pass(pass).tasks;
        let kernel = tasks.iter().map(|task| task.kernel()).find(|kernel| kernel.name == name);
        kernel.unwrap_or_else(|| panic!("no {name}")).blocks
    };
    for pass in [1, 30, 89] {
        let length = pass + 1;
        // Scores: one warp per position of each head, four per block. Concatenation: 512 elements per block, old and
        // new.
        assert_eq!(grid(pass, "gemv_t_batched"), 12 * length.div_ceil(4));
        assert_eq!(grid(pass, "cat"), (768 * pass).div_ceil(512) + 2);
    }
}

/// Profiles of PyTorch's kernels: bert-small with 141 tokens on an H100 (TraceLens), ResNet-50 with 32 images on a V100
/// (Kineto).
#[test]
fn grids_are_those_of_measured_profiles() {
    let grids = |plan: &Plan, name: &str| {
        let kernels = plan.pass(0).tasks.into_iter().map(|task| task.kernel());
        let mut grids: Vec<_> = kernels.filter(|k| k.name == name).map(|k| (k.blocks, k.threads)).collect();
        grids.dedup();
        grids
    };
    let bert = plan(Bert::new(size(bert::SIZES, "small"), 141, 4));
    assert_eq!(grids(&bert, "index_select"), [(564, 128)]);
    assert_eq!(grids(&bert, "layer_norm"), [(141, 128)]);
    assert_eq!(grids(&bert, "gelu"), [(564, 128)]);
    assert!(grids(&bert, "add").contains(&(141, 128)));
    assert_eq!(grids(&plan(ResNet::new(32, 224, 4)), "max_pool"), [(25_088, 256)]);
}

// Sequences of launches, whole and in part.

fn refused(text: &str) -> String {
    open(&[text]).err().unwrap_or_else(|| panic!("{text} is taken")).to_string()
}

#[test]
fn the_iterator_says_what_is_launched() {
    for text in ["bert:pairs=2,size=tiny,sequence=20", "gpt2:tokens=3,sentences=2", "resnet50:side=32"] {
        let expected: Vec<(u64, Kernel)> = launches(text).unwrap().collect();
        let mut program = open(&[text]).unwrap().remove(0);
        let mut number = 0;
        while let Some(kernel) = program.launch() {
            assert_eq!(expected[number], (number as u64, kernel), "{text}");
            number += 1;
        }
        assert_eq!(number, expected.len(), "{text}");
    }
}

#[test]
fn whole_workloads_are_counted_without_being_run() {
    for (text, of_input, inputs) in [
        ("bert:pairs=10000", 148, 10_000),
        ("gpt2:sentences=1000,tokens=100", 33_876, 1_000),
        ("resnet50:images=13400", 174, 13_400),
    ] {
        let mut groups: BTreeMap<(&str, u32, u32), u64> = BTreeMap::new();
        for (_, kernel) in launches(text).unwrap() {
            *groups.entry((kernel.name, kernel.blocks, kernel.threads)).or_default() += 1;
        }
        assert_eq!(groups.values().sum::<u64>(), of_input * inputs, "{text}");
        assert!(groups.values().all(|count| count.is_multiple_of(inputs)));
    }
}

#[test]
fn a_part_of_the_sequence_is_that_part() {
    let text = "bert:pairs=3,size=tiny,sequence=20";
    let run = |text: String| census(open(&[text]).unwrap()[0].as_mut());
    let whole = run(text.to_owned());
    let ends = whole.kernels.len();
    let (first, second) = (ends / 3, ends / 2);
    let part = run(format!("{text},launches={first}..{second}"));
    assert_eq!(part.kernels, whole.kernels[first..second]);
    // Parts add up to the whole.
    let before = run(format!("{text},launches=0..{first}"));
    let after = run(format!("{text},launches={second}..{ends}"));
    let sum = |of: fn(&crate::program::Census) -> u64| [&before, &part, &after].map(of).iter().sum::<u64>();
    assert_eq!(sum(|c| c.warp_instructions), whole.warp_instructions);
    assert_eq!(sum(|c| c.loads.bytes), whole.loads.bytes);
    assert_eq!(part.footprint, whole.footprint);
}

#[test]
fn samples_are_executed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels.toml");
    let text = "error = 0.05\n[[group]]\nname = \"a\"\nsamples = [150, 3]\n[[group]]\nsamples = [7, 3]\n";
    std::fs::write(&path, text).unwrap();
    let program = format!("bert:pairs=2,size=medium,sequence=16,kernels={}", path.display());
    let sampled = census(open(&[program]).unwrap()[0].as_mut()).kernels;
    let all: Vec<Kernel> =
        launches("bert:pairs=2,size=medium,sequence=16").unwrap().map(|(_, k)| k).collect();
    assert_eq!(sampled, [3, 7, 150].map(|n: usize| all[n]));
    let outside = refused(&format!("bert:sequence=16,kernels={}", path.display()));
    assert!(outside.contains("sample 150 is beyond the end of a program with 148 launches"), "{outside}");
    std::fs::write(&path, "kernels = 60\n[[group]]\nsamples = [3]\n").unwrap();
    let other = refused(&format!("bert:kernels={}", path.display()));
    assert!(other.contains("a run with 60 kernels, but the program has 148 launches"), "{other}");
    std::fs::write(&path, "groups = 3\n").unwrap();
    assert!(refused(&format!("bert:kernels={}", path.display())).contains("has no samples"));
    std::fs::write(&path, "[[group]\n").unwrap();
    assert!(refused(&format!("bert:kernels={}", path.display())).contains("not a file of sampled kernels"));
    assert!(refused("bert:kernels=no-such.toml").contains("no-such.toml"));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    assert!(refused("bert:launches=3..3").contains("within 0..148"));
    assert!(refused("bert:launches=0..149").contains("within 0..148"));
    assert!(refused("bert:size=mediun").contains("did you mean `medium`?"));
    assert!(refused("bert:sequence=513").contains("from 1 to 512"));
    assert!(refused("gpt2:prompt=1000,tokens=100").contains("from 1 to 24"));
    assert!(refused("resnet50:images=3,batch=2").contains("a multiple of the batch, 2"));
    assert!(refused("resnet50:type=fp8").contains("fp32, fp16"));
    assert!(refused("onnx").contains("onnx:file="));
    assert!(launches("betw").err().unwrap().to_string().contains("bert"));
}

#[test]
fn runs_are_equal_and_inputs_differ() {
    let run = |text: &str| census(open(&[text]).unwrap()[0].as_mut());
    let text = "bert:pairs=2,size=tiny,sequence=24";
    assert_eq!(run(text), run(text));
    // The gather of words is the fourth launch of a pair; tiny has 46.
    let of = |number: u64| run(&format!("{text},launches={number}..{}", number + 1));
    let (first, second) = (of(3), of(3 + 46));
    assert_eq!(first.kernels, second.kernels);
    assert_ne!(first.digest, second.digest);
}

#[test]
fn weights_are_read_once_by_a_token() {
    // With one row every product reads its weights once: 124 M parameters, minus positions and words that are not
    // used.
    let counted = census(open(&["gpt2:tokens=1"]).unwrap()[0].as_mut());
    let (layers, hidden) = (12_u64, 768_u64);
    let products = layers * 12 * hidden * hidden + 50_257 * hidden;
    assert!(counted.loads.bytes > 4 * products);
    // The vectors are read once for each result, mostly from the first-level cache.
    let touched = 4 * (products + layers * 13 * hidden);
    assert!(counted.touched() > touched && counted.touched() < touched + (16 << 20), "{}", counted.touched());
}

#[test]
fn halves_take_half_the_memory_and_arithmetic() {
    let run =
        |kind: &str| census(open(&[format!("bert:size=tiny,sequence=64,type={kind}")]).unwrap()[0].as_mut());
    let (single, half) = (run("fp32"), run("fp16"));
    assert_eq!(single.kernels.len(), half.kernels.len());
    assert!(half.footprint * 100 < single.footprint * 52);
    let share = half.loads.bytes as f64 / single.loads.bytes as f64;
    assert!((0.48..0.52).contains(&share), "{share}");
    assert!(half.arithmetic * 10 < single.arithmetic * 7);
}

/// A bounded count is a prefix of the whole one, and is reported while it continues.
#[test]
fn a_long_program_is_counted_up_to_a_bound() {
    let run = |most: u64| {
        let mut looks = 0;
        let (census, ended) =
            census_within(open(&["resnet50:side=64"]).unwrap()[0].as_mut(), most, |_| looks += 1);
        (census, ended, looks)
    };
    let (whole, ended, looks) = run(u64::MAX);
    assert!(ended && looks > 3, "{looks}");
    let (part, ended, fewer) = run(whole.entries / 2);
    assert!(!ended && fewer < looks);
    assert!(part.entries >= whole.entries / 2 && part.entries < whole.entries);
    assert!(part.kernels.len() < whole.kernels.len());
    assert_eq!(part.kernels, whole.kernels[..part.kernels.len()]);
    assert_eq!(part.footprint, whole.footprint);
}
