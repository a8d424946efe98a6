//! Operators beyond those of classifiers and transformers; expected sizes are those of the operators' definitions.

use super::{Dimension, Dimensions, FLOAT, File, INT64, Onnx, Plan, TensorProto, kernels, names};
use crate::program::dnn::model::Model;

fn image() -> File {
    File::default()
        .input("x", FLOAT, &[Some(1), Some(4), Some(9), Some(12)])
        .weight("up", &[4, 3, 2, 2])
        .weight("bias", &[3])
        .weight("scale", &[4])
        .numbers("sizes", &[1, 4, 18, 36])
        .numbers("widths", &[0, 0, 1, 2, 0, 0, 3, 4])
        .numbers("thrice", &[1, 1, 3, 1])
        .numbers("from", &[1])
        .numbers("end", &[100])
        .numbers("rows", &[2])
        .numbers("two", &[2])
        .reals("factors", &[1.0, 1.0, 2.0, 2.0])
        .reals("odd", &[1.0, 1.0, 1.5, 2.0])
}

/// Returns operators whose sizes come from attributes and constants.
pub(super) fn resizing() -> File {
    image()
        .node("ConvTranspose x, up, bias > a", &[("strides", &[2, 2])])
        .node("Resize x, , , sizes > b", &[])
        .node("Resize x, , factors > c", &[])
        .node("Pad x, widths > d", &[])
        .node("Tile x, thrice > e", &[])
        .node("Slice x, from, end, rows, two > f", &[])
        .node("LRN x > g", &[("size", &[5])])
        .node("MaxPool x > h", &[("kernel_shape", &[3, 3]), ("strides", &[2, 2]), ("ceil_mode", &[1])])
}

/// Runs one node on images of 4 x 9 x 12; returns the names of the kernels. The result must have these dimensions.
fn run(text: &str, attributes: &[(&str, &[i64])], dims: &[i64]) -> Vec<&'static str> {
    let dims: Vec<Option<i64>> = dims.iter().copied().map(Some).collect();
    names(image().node(text, attributes).output("y", &dims).open())
}

#[test]
fn images_change_their_size_as_defined() {
    assert_eq!(
        run("ConvTranspose x, up, bias > y", &[("strides", &[2, 2])], &[1, 3, 18, 24]).last(),
        Some(&"add")
    );
    assert_eq!(run("GlobalMaxPool x > y", &[], &[1, 4, 1, 1]), ["max"]);
    assert_eq!(run("LRN x > y", &[("size", &[5])], &[1, 4, 9, 12]), ["lrn"]);
    let two = ["layer_norm", "scale_shift"];
    assert_eq!(run("InstanceNormalization x, scale, scale > y", &[], &[1, 4, 9, 12]), two);
    assert_eq!(run("Resize x, , , sizes > y", &[], &[1, 4, 18, 36]), ["upsample_nearest"]);
    assert_eq!(run("Resize x, , factors > y", &[], &[1, 4, 18, 24]), ["upsample_nearest"]);
    assert_eq!(run("Upsample x, factors > y", &[], &[1, 4, 18, 24]), ["upsample_nearest"]);
    assert_eq!(run("Pad x, widths > y", &[], &[1, 4, 13, 18]), ["fill", "copy"]);
    assert_eq!(run("Tile x, thrice > y", &[], &[1, 4, 27, 12]), ["repeat"]);
    assert_eq!(run("Slice x, from, end, rows, two > y", &[], &[1, 4, 4, 12]), ["slice"]);
}

/// torch.nn.MaxPool2d's formula: a last window that begins inside counts, one that begins in the padding after it
/// does not.
#[test]
fn windows_that_end_outside_count_in_ceil_mode() {
    let pool = |size: i64, stride: i64, pad: i64, rows: i64, columns: i64| {
        let sides: &[(&str, &[i64])] = &[
            ("kernel_shape", &[size, size]),
            ("strides", &[stride, stride]),
            ("pads", &[pad, pad, pad, pad]),
            ("ceil_mode", &[1]),
        ];
        assert_eq!(run("MaxPool x > y", sides, &[1, 4, rows, columns]), ["max_pool"]);
    };
    pool(2, 2, 0, 5, 6);
    pool(3, 2, 0, 4, 6);
    pool(3, 2, 1, 5, 7);
    // Ten columns and padding of one to a side: a fourth window would begin at column 9 of 12, in the image.
    pool(2, 3, 1, 4, 5);
}

#[test]
fn a_transposed_convolution_multiplies_each_pixel_by_each_filter() {
    let file = image().node("ConvTranspose x, up > y", &[("strides", &[2, 2])]);
    let plan = Plan::new("onnx", Box::new(file.open()), 1);
    let multiply_adds: u64 = plan.pass(0).tasks.iter().map(|task| task.multiply_adds()).sum();
    assert_eq!(multiply_adds, 4 * (3 * 2 * 2) * 9 * 12);
}

#[test]
fn lines_are_images_of_one_row() {
    let line = || {
        File::default()
            .input("x", FLOAT, &[Some(2), Some(6), Some(50)])
            .weight("w", &[8, 6, 5])
            .node("Conv x, w > c", &[("strides", &[2]), ("pads", &[2, 2])])
            .node("MaxPool c > p", &[("kernel_shape", &[3]), ("strides", &[3])])
            .node("GlobalAveragePool p > y", &[])
    };
    let outputs = line().output("c", &[Some(2), Some(8), Some(25)]).output("p", &[Some(2), Some(8), Some(8)]);
    let plan = Plan::new("onnx", Box::new(outputs.output("y", &[Some(2), Some(8), Some(1)]).open()), 1);
    let multiply_adds: u64 = plan.pass(0).tasks.iter().map(|task| task.multiply_adds()).sum();
    assert_eq!(multiply_adds, 2 * 8 * 25 * 6 * 5);
}

#[test]
fn sums_of_several_reductions_and_softmax_along_any_dimension() {
    assert_eq!(run("Sum x, x, x > y", &[], &[1, 4, 9, 12]), ["add", "add"]);
    assert_eq!(run("Mean x, x > y", &[], &[1, 4, 9, 12]), ["add", "mul"]);
    assert_eq!(
        run("ReduceSum x > y", &[("axes", &[1, 2]), ("keepdims", &[0])], &[1, 12]),
        ["reduce_columns"]
    );
    assert_eq!(run("ReduceMax x > y", &[("axes", &[2, 3])], &[1, 4, 1, 1]), ["max"]);
    assert_eq!(run("ArgMax x > y", &[("axis", &[-1]), ("keepdims", &[0])], &[1, 4, 9]), ["argmax"]);
    let columns = ["reduce_columns", "reduce_columns", "softmax_spatial"];
    assert_eq!(run("Softmax x > y", &[("axis", &[1])], &[1, 4, 9, 12]), columns);
}

/// Every second number in reverse gives the sizes of a reshape.
#[test]
fn known_numbers_are_sliced_with_steps() {
    let file = File::default()
        .input("x", FLOAT, &[Some(6), Some(4)])
        .numbers("all", &[2, 9, 3, 9, 4])
        .numbers("last", &[-1])
        .numbers("least", &[i64::MIN])
        .numbers("axis", &[0])
        .numbers("step", &[-2])
        .node("Slice all, last, least, axis, step > dims", &[])
        .node("Reshape x, dims > r", &[])
        .node("Relu r > y", &[])
        .output("y", &[Some(4), Some(3), Some(2)]);
    assert_eq!(names(file.open()), ["relu"]);
}

fn constant(op: &str, input: &str, value: TensorProto) -> File {
    let mut file = File::default()
        .input("x", FLOAT, &[Some(2), Some(3)])
        .numbers("dims", &[3, 5])
        .node(&format!("{op} {input} > w"), &[("value", &[0])])
        .node("MatMul x, w > y", &[]);
    file.0.node[0].input.retain(|name| !name.is_empty());
    file.0.node[0].attribute[0].t = Some(value);
    file
}

/// Some exporters write parameters as nodes: PaddlePaddle's as constants, Caffe2's without their values.
#[test]
fn what_nodes_make_without_inputs_are_parameters() {
    let weights = TensorProto { dims: vec![3, 5], data_type: FLOAT, ..TensorProto::default() };
    let one = TensorProto { dims: vec![1], data_type: FLOAT, ..TensorProto::default() };
    for file in [constant("Constant", "", weights), constant("ConstantOfShape", "dims", one)] {
        let model = file.open();
        assert_eq!(model.store().parameters(), 15);
        assert_eq!(kernels(model).len(), 1);
    }
}

#[test]
fn limits_of_ranges_may_be_floats() {
    let file = File::default()
        .input("x", FLOAT, &[Some(2), Some(7)])
        .reals("from", &[0.0])
        .reals("step", &[1.0])
        .numbers("place", &[1])
        .node("Shape x > s", &[])
        .node("Gather s, place > length", &[("axis", &[0])])
        .node("Range from, length, step > r", &[])
        .node("Add x, r > y", &[])
        .output("r", &[Some(7)]);
    assert_eq!(names(file.open()), ["add"]);
}

#[test]
fn what_cannot_be_resized_is_refused() {
    let refused = |text: &str, attributes: &[(&str, &[i64])]| image().node(text, attributes).refused();
    let factors = refused("Resize x, , odd > y", &[]);
    assert!(factors.contains("only whole factors"), "{factors}");
    let overlapping = refused("ConvTranspose x, up > y", &[("strides", &[1, 1])]);
    assert!(overlapping.contains("strides as long as the window"), "{overlapping}");
    let size = refused("LRN x > y", &[]);
    assert!(size.contains("`size` is 0, out of range"), "{size}");
    let far = refused("ReduceSum x > y", &[("axes", &[1, 3])]);
    assert!(far.contains("not adjacent"), "{far}");
}

fn open_file() -> File {
    let mut file = File::default().input("x", FLOAT, &[None, None, None]).input("ids", INT64, &[None]);
    let names = [Some("batch"), Some("length"), None, Some("batch")];
    let inputs = file
        .0
        .input
        .iter_mut()
        .filter_map(|input| input.r#type.as_mut()?.tensor_type.as_mut()?.shape.as_mut());
    for (dim, name) in inputs.flat_map(|shape| &mut shape.dim).zip(names) {
        *dim = Dimension { dim_value: None, dim_param: name.map(str::to_owned) };
    }
    file.node("Relu x > y", &[]).node("Cast ids > z", &[("to", &[1])])
}

#[test]
fn open_dimensions_have_lengths_by_name() {
    let lengths = |named: &[(&str, u64)]| Dimensions {
        named: named.iter().map(|(name, length)| ((*name).to_owned(), *length)).collect(),
        other: 7,
    };
    let file = open_file().output("y", &[Some(3), Some(40), Some(7)]).output("z", &[Some(3)]);
    Onnx::read(file.bytes(), &lengths(&[("batch", 3), ("length", 40)]))
        .expect("every length is as it was given");
    let misspelt = Onnx::read(open_file().bytes(), &lengths(&[("lenght", 40)])).expect_err("no such name");
    assert_eq!(misspelt.nearest.as_deref(), Some("length"));
    assert_eq!(misspelt.allowed, ["batch", "length"]);
}

#[test]
fn a_shape_that_contradicts_the_file_is_refused() {
    let refused = open_file().output("y", &[Some(3), None, None]).refused();
    assert!(refused.contains("`y` has shape [1, 1, 1], but [3, ?, ?] in the file"), "{refused}");
    let ranks = open_file().output("z", &[Some(1), Some(1)]).refused();
    assert!(ranks.contains("`z` has shape [1]"), "{ranks}");
}
