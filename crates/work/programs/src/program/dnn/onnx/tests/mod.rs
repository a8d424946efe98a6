//! Files made here, node by node.

mod constants;
mod operators;

use prost::Message;

use super::proto::{
    AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, TensorType,
    TypeProto, ValueInfoProto,
};
use super::{Dimensions, Onnx};
use crate::program::Kernel;
use crate::program::dnn::model::Model;
use crate::program::dnn::model::bert;
use crate::program::dnn::network::Plan;

/// Open dimensions are one long.
const ONE: Dimensions = Dimensions { named: Vec::new(), other: 1 };
const FLOAT: i32 = 1;
const INT64: i32 = 7;

#[derive(Default)]
struct File(GraphProto);

impl File {
    fn input(mut self, name: &str, elem_type: i32, dims: &[Option<i64>]) -> File {
        let dim = dims.iter().map(|d| Dimension { dim_value: *d, dim_param: None }).collect();
        let tensor = TensorType { elem_type, shape: Some(TensorShapeProto { dim }) };
        let r#type = Some(TypeProto { tensor_type: Some(tensor) });
        self.0.input.push(ValueInfoProto { name: name.to_owned(), r#type });
        self
    }

    /// Adds an initializer: a tensor without its name and dimensions.
    fn constant(mut self, name: &str, dims: &[i64], tensor: TensorProto) -> File {
        let (dims, name) = (dims.to_vec(), name.to_owned());
        self.0.initializer.push(TensorProto { dims, name, ..tensor });
        self
    }

    fn weight(self, name: &str, dims: &[i64]) -> File {
        self.constant(name, dims, TensorProto { data_type: FLOAT, ..TensorProto::default() })
    }

    fn numbers(self, name: &str, numbers: &[i64]) -> File {
        let raw: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let tensor = TensorProto { data_type: INT64, raw_data: raw.into(), ..TensorProto::default() };
        self.constant(name, &[numbers.len() as i64], tensor)
    }

    /// Adds a short constant of floats.
    fn reals(self, name: &str, reals: &[f32]) -> File {
        let tensor = TensorProto { data_type: FLOAT, float_data: reals.to_vec(), ..TensorProto::default() };
        self.constant(name, &[reals.len() as i64], tensor)
    }

    /// Adds the stated shape of a result.
    fn output(mut self, name: &str, dims: &[Option<i64>]) -> File {
        self = self.input(name, FLOAT, dims);
        self.0.output.extend(self.0.input.pop());
        self
    }

    /// Adds a node `Op in, in > out, out`, with attributes.
    fn node(mut self, text: &str, attributes: &[(&str, &[i64])]) -> File {
        let (left, outputs) = text.split_once(" > ").unwrap();
        let (op, inputs) = left.split_once(' ').unwrap();
        let names = |text: &str| text.split(", ").map(str::to_owned).collect();
        let attribute = attributes
            .iter()
            .map(|(name, values)| AttributeProto {
                name: (*name).to_owned(),
                i: values[0],
                ints: values.to_vec(),
                ..AttributeProto::default()
            })
            .collect();
        self.0.node.push(NodeProto {
            input: names(inputs),
            output: names(outputs),
            name: format!("node_{}", self.0.node.len()),
            op_type: op.to_owned(),
            attribute,
        });
        self
    }

    fn bytes(self) -> Vec<u8> {
        ModelProto { ir_version: 8, graph: Some(self.0) }.encode_to_vec()
    }

    fn open(self) -> Onnx {
        Onnx::read(self.bytes(), &ONE).unwrap_or_else(|fault| panic!("{fault}"))
    }

    fn refused(self) -> String {
        Onnx::read(self.bytes(), &ONE).expect_err("it is taken").to_string()
    }
}

fn kernels(model: Onnx) -> Vec<Kernel> {
    Plan::new("onnx", Box::new(model), 1).pass(0).tasks.iter().map(|task| task.kernel()).collect()
}

fn names(model: Onnx) -> Vec<&'static str> {
    kernels(model).iter().map(|kernel| kernel.name).collect()
}

fn images() -> File {
    File::default()
        .input("x", FLOAT, &[None, Some(3), Some(33), Some(33)])
        .weight("w", &[16, 3, 3, 3])
        .weight("b", &[16])
        .weight("fc", &[10, 16])
        .weight("fb", &[10])
        .node("Conv x, w, b > c", &[("strides", &[2, 2]), ("pads", &[1, 1, 1, 1]), ("kernel_shape", &[3, 3])])
        .node("Relu c > r", &[])
        .node("MaxPool r > p", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])])
        .node("GlobalAveragePool p > g", &[])
        .node("Flatten g > f", &[])
        .node("Gemm f, fc, fb > y", &[("transB", &[1])])
        .node("Softmax y > z", &[("axis", &[1])])
}

#[test]
fn a_small_network_of_images() {
    let model = images().open();
    assert_eq!(model.store().parameters(), 16 * 27 + 16 + 160 + 10);
    let plan = Plan::new("onnx", Box::new(model), 1);
    let tasks = plan.pass(0).tasks;
    // 33 rows, stride 2, padding 1: 17.
    let multiply_adds: u64 = tasks.iter().map(|task| task.multiply_adds()).sum();
    assert_eq!(multiply_adds, 16 * 27 * 17 * 17 + 160);
    let names: Vec<_> = tasks.iter().map(|task| task.kernel().name).collect();
    let expected = ["implicit_conv_32x32", "relu", "max_pool", "mean", "gemv_t", "softmax_warp_forward"];
    assert_eq!(names, expected);
    // Pooled to 8 x 8.
    assert_eq!(tasks[2].kernel().blocks, (16 * 8 * 8_u32).div_ceil(256));
}

/// Returns x [2, 5, 8] -> heads [2, 4, 5, 2] through Shape, Slice, Gather, Div, Concat, Reshape.
fn shapes() -> File {
    File::default()
        .input("x", FLOAT, &[Some(2), Some(5), Some(8)])
        .numbers("zero", &[0])
        .numbers("one", &[1])
        .numbers("heads", &[4, -1])
        .numbers("two", &[2])
        .numbers("four", &[4])
        .numbers("axis", &[0])
        .node("Shape x > s", &[])
        .node("Slice s, zero, two > front", &[])
        .node("Gather s, two > last", &[("axis", &[0])])
        .node("Div last, four > size", &[])
        .node("Concat front, four, size > dims", &[("axis", &[0])])
        .node("Reshape x, dims > h", &[])
        .node("Transpose h > t", &[("perm", &[0, 2, 1, 3])])
        .node("Transpose h > u", &[("perm", &[0, 2, 3, 1])])
        .node("MatMul t, u > scores", &[])
        .node("Softmax scores > p", &[("axis", &[-1])])
        .node("MatMul p, t > y", &[])
}

#[test]
fn shapes_are_computed_as_exporters_write_them() {
    let all = kernels(shapes().open());
    let names: Vec<_> = all.iter().map(|kernel| kernel.name).collect();
    let product = "bgemm_32x32_nn";
    assert_eq!(names, ["transpose", "transpose", product, "softmax_warp_forward", product]);
    // Eight batches with one tile each; forty rows of five.
    assert_eq!((all[2].blocks, all[3].blocks), (8, 5));
}

#[test]
fn every_operator_is_lowered() {
    let base = || {
        File::default()
            .input("x", FLOAT, &[Some(2), Some(6), Some(4)])
            .input("ids", INT64, &[Some(1), Some(7)])
            .weight("v", &[4])
            .weight("table", &[11, 4])
            .numbers("zero", &[0])
            .numbers("wide", &[3, 2, 6, 4])
            .numbers("parts", &[2, 4])
    };
    let check = |text: &str, attributes: &[(&str, &[i64])], expected: &[&str]| {
        assert_eq!(names(base().node(text, attributes).open()), expected, "{text}");
    };
    for (op, name) in [("Add", "add"), ("Sub", "sub"), ("Mul", "mul"), ("Div", "div"), ("Pow", "pow")] {
        check(&format!("{op} x, v > y"), &[], &[name]);
    }
    for (op, name) in [("Relu", "relu"), ("Sqrt", "sqrt"), ("Erf", "erf"), ("Tanh", "tanh"), ("Cast", "cast")]
    {
        check(&format!("{op} x > y"), &[("to", &[10])], &[name]);
    }
    check("LayerNormalization x, v, v > y", &[("axis", &[-1])], &["layer_norm"]);
    check("ReduceMean x > y", &[("axes", &[-1])], &["mean"]);
    check("ReduceMean x > y", &[("axes", &[1])], &["reduce_columns"]);
    check("Gather table, ids > y", &[], &["index_select"]);
    check("Expand x, wide > y", &[], &["expand"]);
    check("Split x, parts > y, z", &[("axis", &[1])], &["slice", "slice"]);
    check("Concat x, x > y", &[("axis", &[1])], &["cat"]);
    check("Transpose x > y", &[("perm", &[1, 0, 2])], &["transpose"]);
    check("Unsqueeze x, zero > y", &[], &[]);
    check("Where x, x, v > y", &[], &["where"]);
    check("Equal x, v > y", &[], &["eq"]);
    let channels = base().weight("b", &[6]).node("BatchNormalization x, b, b, b, b > y", &[]);
    assert_eq!(names(channels.open()), ["batch_norm_inference"]);
}

#[test]
fn what_cannot_be_run_names_operator_and_node() {
    let x = || File::default().input("x", FLOAT, &[Some(2), Some(6)]).weight("w", &[5, 3]);
    let unknown = x().node("Relu x > r", &[]).node("LSTM r > y", &[]).refused();
    assert!(unknown.contains("operator `LSTM` of node `node_1` is not supported"), "{unknown}");
    let nearest = x().node("Softmaxx x > y", &[]).refused();
    assert!(nearest.contains("did you mean `Softmax`?"), "{nearest}");
    let unfit = x().node("MatMul x, w > y", &[]).refused();
    assert!(
        unfit.contains("operator `MatMul` of node `node_0`") && unfit.contains("do not match"),
        "{unfit}"
    );
    let open = x().node("Reshape x, x > y", &[]).refused();
    assert!(open.contains("not known before the model runs"), "{open}");
    assert!(x().node("Add x, w > y", &[]).refused().contains("do not match"));
    let complex = File::default().input("x", 14, &[Some(2)]).node("Relu x > y", &[]).refused();
    assert!(complex.contains("data type 14"), "{complex}");
    assert!(x().node("Add x, b > y", &[]).refused().contains("nothing produces its input `b`"));
    let negative = File::default().weight("w", &[-2]).node("Relu w > y", &[]).refused();
    assert!(negative.contains("negative"), "{negative}");
}

#[test]
fn damaged_files_are_refused() {
    let bytes = File::default()
        .input("x", FLOAT, &[Some(2), Some(6)])
        .weight("w", &[6, 3])
        .node("MatMul x, w > y", &[])
        .bytes();
    assert!(Onnx::read(bytes.clone(), &ONE).is_ok());
    for end in 0..bytes.len() {
        assert!(Onnx::read(bytes[..end].to_vec(), &ONE).is_err(), "cut to {end} of {} B", bytes.len());
    }
    let text = Onnx::read(b"# not a model\n".to_vec(), &ONE).expect_err("a text").to_string();
    assert!(text.contains("not an ONNX file"), "{text}");
}

/// A damaged file may still be a model, but must not crash the reader or its kernels.
#[test]
fn flipped_bits_bring_nobody_down() {
    for bytes in [shapes().bytes(), images().bytes(), operators::resizing().bytes()] {
        for place in 0..bytes.len() {
            for flip in [1, 0x10, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] ^= flip;
                if let Ok(model) = Onnx::read(damaged, &ONE) {
                    kernels(model);
                }
            }
        }
    }
}

/// A layer in an exporter's form gives the kernels of the built-in model, and copies where that has views.
#[test]
fn a_layer_of_bert_from_a_file_multiplies_as_the_built_in_one() {
    let (hidden, sequence, heads) = (512_i64, 40_i64, 8_i64);
    let mut file = File::default().input("x", FLOAT, &[Some(1), Some(sequence), Some(hidden)]);
    for name in ["q", "k", "v", "o"] {
        file = file.weight(name, &[hidden, hidden]).weight(&format!("{name}b"), &[hidden]);
    }
    file = file
        .weight("up", &[hidden, 4 * hidden])
        .weight("down", &[4 * hidden, hidden])
        .numbers("split", &[1, sequence, heads, hidden / heads])
        .numbers("whole", &[1, sequence, hidden]);
    for name in ["q", "k", "v"] {
        let order: &[i64] = if name == "k" { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] };
        file = file
            .node(&format!("MatMul x, {name} > {name}1"), &[])
            .node(&format!("Add {name}1, {name}b > {name}2"), &[])
            .node(&format!("Reshape {name}2, split > {name}3"), &[])
            .node(&format!("Transpose {name}3 > {name}4"), &[("perm", order)]);
    }
    let file = file
        .node("MatMul q4, k4 > s", &[])
        .node("Softmax s > p", &[("axis", &[-1])])
        .node("MatMul p, v4 > c", &[])
        .node("Transpose c > c1", &[("perm", &[0, 2, 1, 3])])
        .node("Reshape c1, whole > c2", &[])
        .node("MatMul c2, o > o1", &[])
        .node("MatMul o1, up > u", &[])
        .node("MatMul u, down > d", &[]);
    let of_file = Plan::new("onnx", Box::new(file.open()), 1);
    let sum = |plan: &Plan| plan.pass(0).tasks.iter().map(|task| task.multiply_adds()).sum::<u64>();
    let built_in = Plan::new("bert", Box::new(bert::Bert::new(bert::SIZES[3].1, 40, 4)), 1);
    let (hidden, labels) = (hidden as u64, 3);
    assert_eq!(8 * sum(&of_file) + hidden * hidden + labels * hidden, sum(&built_in));
}
