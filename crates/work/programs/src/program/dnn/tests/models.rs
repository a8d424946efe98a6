//! The models against published figures.

use crate::program::dnn::model::Model;
use crate::program::dnn::model::bert::{self, Bert};
use crate::program::dnn::model::gpt2::{self, Gpt2};
use crate::program::dnn::model::resnet::ResNet;
use crate::program::dnn::network::Plan;

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
    // HuggingFace's counts of the released checkpoints, the output tied to the words.
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
    // Three of the mask, six of the embeddings, seventeen a layer, three at the end.
    let bert = plan(Bert::new(size(bert::SIZES, "medium"), 128, 4));
    assert_eq!(bert.count(), 3 + 6 + 17 * 8 + 3);
    // Around the layers: seven before, three embeddings, two at the end, fifteen to choose a word. A layer has 26, two of which
    // put new keys and values behind old ones, which the first pass has not. With one row, merging heads copies nothing.
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
        // Scores: a warp for each position of each head, four to a block. Concatenation: 512 elements a block, old and new.
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
