//! Constants: initializers, `Constant`, `ConstantOfShape` and the results of nodes that depend only on these are in
//! memory, and are not written by any kernel of a pass. Sizes are those of `TensorProto.DataType`: bytes of an
//! element, or elements of a byte.

use std::path::Path;

use prost::Message;

use super::super::proto::{AttributeProto, Entry, NodeProto, SparseTensorProto, TensorProto};
use super::{Dimensions, FLOAT, File, INT64, ModelProto, ONE, Onnx, kernels, names};
use crate::program::dnn::model::Model;

/// Returns the bytes of every lasting tensor except the input, which has 6 elements.
fn bytes(model: &Onnx) -> Vec<u64> {
    let lasting = model.store().tensors().iter().filter(|tensor| tensor.name != "input");
    lasting.map(|tensor| tensor.dims.iter().product::<u64>() * u64::from(tensor.width)).collect()
}

fn typed(data_type: i32) -> TensorProto {
    TensorProto { data_type, ..TensorProto::default() }
}

fn with_tensor(mut file: File, text: &str, name: &str, tensor: TensorProto) -> File {
    file = file.node(text, &[]);
    let node = file.0.node.last_mut().unwrap();
    node.input.retain(|name| !name.is_empty());
    node.attribute.push(AttributeProto {
        name: name.to_owned(),
        t: Some(tensor),
        ..AttributeProto::default()
    });
    file
}

/// Data types and bytes of an element: float, uint8, int8, uint16, int16, int32, float16, double, uint32, uint64, bfloat16, float8 (five kinds).
const TYPES: [(i32, u64); 16] = [
    (1, 4),
    (2, 1),
    (3, 1),
    (4, 2),
    (5, 2),
    (6, 4),
    (10, 2),
    (11, 8),
    (12, 4),
    (13, 8),
    (16, 2),
    (17, 1),
    (18, 1),
    (19, 1),
    (20, 1),
    (24, 1),
];

#[test]
fn a_constant_of_any_type_is_made_once() {
    for (data_type, width) in TYPES {
        let x = || File::default().input("x", FLOAT, &[Some(2), Some(3)]);
        let of = |dims: &[i64]| TensorProto { dims: dims.to_vec(), ..typed(data_type) };
        let initializer = x().constant("w", &[700, 1, 3], typed(data_type));
        let constant = with_tensor(x(), "Constant  > w", "value", of(&[700, 1, 3]));
        let filled = with_tensor(x().numbers("d", &[700, 1, 3]), "ConstantOfShape d > w", "value", of(&[1]));
        for file in [initializer, constant, filled] {
            let model = file.node("Add x, w > y", &[]).open();
            assert!(bytes(&model).contains(&(2_100 * width)), "type {data_type}: {:?}", bytes(&model));
            assert_eq!(names(model), ["add"], "type {data_type}");
        }
    }
    // Without a value: zeros of fp32.
    let file = File::default().input("x", FLOAT, &[Some(2), Some(3)]).numbers("d", &[700, 1, 3]);
    let model = file.node("ConstantOfShape d > w", &[]).node("Add x, w > y", &[]).open();
    assert_eq!((bytes(&model).last(), names(model)), (Some(&8_400), vec!["add"]));
}

/// Half precision in, half precision out: 64 KiB of weights, read once, and nothing filled.
#[test]
fn weights_of_half_precision_made_by_constant_of_shape_are_parameters() {
    let file = File::default().input("x", 10, &[Some(4), Some(256)]).numbers("d", &[256, 128]);
    let half = TensorProto { dims: vec![1], ..typed(10) };
    let model = with_tensor(file, "ConstantOfShape d > w", "value", half).node("MatMul x, w > y", &[]).open();
    assert_eq!(model.store().parameters(), 256 * 128);
    assert!(bytes(&model).contains(&(256 * 128 * 2)));
    let all = kernels(model);
    assert!(all.len() == 1 && all[0].name.starts_with("gemm"), "{all:?}");
}

#[test]
fn what_nodes_make_of_constants_is_made_once() {
    let x = || File::default().input("x", FLOAT, &[Some(5), Some(8)]);
    // Half in the file, float in memory; the half is not kept.
    let cast = x().constant("h", &[6, 8], typed(10)).node("Cast h > f", &[("to", &[1])]);
    let model = cast.node("Transpose f > t", &[("perm", &[1, 0])]).node("MatMul x, t > y", &[]).open();
    assert_eq!(bytes(&model), [6 * 8 * 4]);
    assert_eq!(kernels(model).len(), 1);
    // A shape that is computed from constants, and one from the shape of a constant.
    let shape = x().numbers("a", &[8]).numbers("b", &[6]).node("Concat a, b > d", &[("axis", &[0])]);
    let model = shape.node("ConstantOfShape d > w", &[]).node("MatMul x, w > y", &[]).open();
    assert_eq!((bytes(&model).last(), kernels(model).len()), (Some(&(6 * 8 * 4)), 1));
    let like = x().weight("v", &[8, 6]).node("Shape v > d", &[]).node("ConstantOfShape d > w", &[]);
    let model = like.node("Add w, v > s", &[]).node("MatMul x, s > y", &[]).open();
    assert_eq!((bytes(&model), kernels(model).len()), (vec![6 * 8 * 4], 1));
    // A shape of the input: the tensor is made in every pass.
    let made = x().node("Shape x > d", &[]).node("ConstantOfShape d > w", &[]).node("Add x, w > y", &[]);
    assert_eq!(names(made.open()), ["fill", "add"]);
    // A tensor that is also read by a different node stays.
    let both = x().weight("v", &[8, 8]).node("Transpose v > t", &[]).node("MatMul x, t > a", &[]);
    assert_eq!(bytes(&both.node("MatMul a, v > y", &[]).open()), [256, 256]);
}

/// Packed types: uint4, int4, float4e2m1 have two elements per byte; uint2, int2 four. `DequantizeLinear` reads them
/// in each pass.
#[test]
fn packed_weights_take_a_part_of_a_byte() {
    for (data_type, of_byte) in [(21, 2_u64), (22, 2), (23, 2), (25, 4), (26, 4)] {
        // 64 x 32 with a factor for each block of 16 rows, for each column, for the whole; and an odd number of elements for the whole.
        let cases: [(&[i64], &[i64], i64); 4] =
            [(&[64, 32], &[4, 32], 0), (&[64, 32], &[32], 1), (&[64, 32], &[1], 1), (&[7, 9], &[1], 0)];
        for (dims, scale, axis) in cases {
            let file = File::default().constant("q", dims, typed(data_type)).weight("s", scale);
            let file = file.input("x", FLOAT, &[Some(dims[0]), Some(dims[1])]);
            let file = file.node("DequantizeLinear q, s > w", &[("axis", &[axis])]);
            let model = file.node("Add x, w > y", &[]).output("y", &[Some(dims[0]), Some(dims[1])]).open();
            let count = dims.iter().product::<i64>() as u64;
            assert_eq!(bytes(&model)[0], count.div_ceil(of_byte), "type {data_type}");
            assert_eq!(names(model), ["dequantize", "add"]);
        }
    }
    let file = File::default().constant("q", &[8, 8], typed(22)).input("x", FLOAT, &[Some(8), Some(8)]);
    let refused = file.node("MatMul x, q > y", &[]).refused();
    assert!(refused.contains("several elements in a byte"), "{refused}");
    let input = File::default().input("x", 22, &[Some(8)]).node("Relu x > y", &[]).refused();
    assert!(input.contains("two or four bits"), "{input}");
}

#[test]
fn quantised_weights_stay_small() {
    // Per output channel, per tensor, with and without zero points.
    let cases: [(&str, &[i64]); 4] = [("q, s", &[16]), ("q, s, z", &[16]), ("q, s", &[]), ("q, s, z", &[])];
    for (inputs, scale) in cases {
        let file = File::default().constant("q", &[16, 3, 3, 3], typed(3)).weight("s", scale);
        let file =
            file.constant("z", scale, typed(3)).input("x", FLOAT, &[Some(1), Some(3), Some(9), Some(9)]);
        let file = file.node(&format!("DequantizeLinear {inputs} > w"), &[("axis", &[0])]);
        let model = file.node("Conv x, w > y", &[("kernel_shape", &[3, 3])]).open();
        assert_eq!(bytes(&model)[0], 16 * 27, "{inputs}");
        assert_eq!(names(model)[0], "dequantize");
    }
    let file =
        File::default().input("x", FLOAT, &[Some(2), Some(6)]).weight("s", &[]).constant("z", &[], typed(2));
    let file = file.node("QuantizeLinear x, s, z > q", &[]).node("DequantizeLinear q, s, z > y", &[]);
    assert_eq!(names(file.open()), ["quantize", "dequantize"]);
    let file = File::default().input("x", FLOAT, &[Some(2), Some(6)]).weight("s", &[5]);
    let refused = file.node("QuantizeLinear x, s > q", &[]).refused();
    assert!(refused.contains("5 factors for a dimension of 6"), "{refused}");
}

#[test]
fn constants_in_every_attribute() {
    let x = || File::default().input("x", FLOAT, &[Some(4), Some(6)]);
    let constant = |attribute: AttributeProto| {
        let mut file = x();
        let output = vec!["c".to_owned()];
        file.0.node.push(NodeProto {
            op_type: "Constant".to_owned(),
            output,
            attribute: vec![attribute],
            ..NodeProto::default()
        });
        file
    };
    let named = |name: &str| AttributeProto { name: name.to_owned(), ..AttributeProto::default() };
    for attribute in [
        AttributeProto { f: 2.0, ..named("value_float") },
        AttributeProto { floats: vec![2.0; 6], ..named("value_floats") },
    ] {
        assert_eq!(names(constant(attribute).node("Mul x, c > y", &[]).open()), ["mul"]);
    }
    let dims = AttributeProto { ints: vec![6, 4], ..named("value_ints") };
    let file =
        constant(dims).node("Reshape x, c > r", &[]).node("Relu r > y", &[]).output("y", &[Some(6), Some(4)]);
    assert_eq!(names(file.open()), ["relu"]);
    let one = AttributeProto { i: 0, ..named("value_int") };
    let file = constant(one).node("Gather x, c > y", &[]).output("y", &[Some(6)]);
    assert_eq!(names(file.open()), ["slice"]);
    let sparse =
        SparseTensorProto { values: Some(TensorProto { dims: vec![2], ..typed(FLOAT) }), dims: vec![6, 50] };
    let file = constant(AttributeProto { sparse_tensor: Some(sparse.clone()), ..named("sparse_value") });
    assert!(bytes(&file.node("MatMul x, c > y", &[]).open()).contains(&1_200));
    let words = constant(named("value_strings")).node("Relu x > y", &[]).refused();
    assert!(words.contains("value_strings"), "{words}");
    // An initializer with two of 300 elements in the file: runtimes make a dense tensor of it.
    let mut file = x();
    let values = sparse.values.clone().map(|values| TensorProto { name: "w".to_owned(), ..values });
    file.0.sparse_initializer.push(SparseTensorProto { values, ..sparse });
    let model = file.node("MatMul x, w > y", &[]).open();
    assert_eq!((bytes(&model), kernels(model).len()), (vec![1_200], 1));
}

/// With `external_data`, shapes suffice for weights; shape values are read from the file beside the model.
#[test]
fn elements_may_be_in_another_file() {
    let external = |data_type: i32, location: &str, offset: &str| {
        let entry = |key: &str, value: &str| Entry { key: key.to_owned(), value: value.to_owned() };
        TensorProto {
            external_data: vec![entry("location", location), entry("offset", offset)],
            ..typed(data_type)
        }
    };
    let file = |location: &str| {
        let file = File::default().input("x", FLOAT, &[Some(4), Some(6)]);
        let file = file.constant("w", &[100, 100], external(FLOAT, "absent.data", "0"));
        let file = file.constant("d", &[2], external(INT64, location, "8")).constant(
            "u",
            &[5_000],
            external(INT64, "absent.data", "0"),
        );
        let file =
            file.node("Reshape x, d > r", &[]).node("Relu r > y", &[]).output("y", &[Some(3), Some(8)]);
        ModelProto { ir_version: 8, graph: Some(file.0) }.encode_to_vec()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    let numbers: Vec<u8> = [99_i64, 3, 8].iter().flat_map(|n| n.to_le_bytes()).collect();
    std::fs::write(folder.path().join("m.data"), numbers).unwrap();
    let open = |location: &str, path: &Path| {
        std::fs::write(path, file(location)).unwrap();
        Onnx::open(path, &ONE)
    };
    let model = open("m.data", &path).unwrap();
    assert_eq!(bytes(&model), [40_000, 16, 40_000]);
    assert_eq!(names(model), ["relu"]);
    for (location, says) in
        [("other.data", "`other.data`"), ("../m.data", "model's folder"), ("/m.data", "model's folder")]
    {
        let refused = open(location, &path).unwrap_err().to_string();
        assert!(refused.contains("the elements of `d`") && refused.contains(says), "{refused}");
    }
}

#[test]
fn types_that_no_kernel_has_are_named() {
    for (data_type, says) in
        [(8, "text"), (14, "complex"), (15, "complex"), (0, "data type 0"), (99, "data type 99")]
    {
        let refused = File::default().input("x", data_type, &[Some(2)]).node("Relu x > y", &[]).refused();
        assert!(refused.contains(says) && refused.contains("not supported"), "{refused}");
        let refused = File::default().constant("x", &[2], typed(data_type)).node("Relu x > y", &[]).refused();
        assert!(refused.contains(says), "{refused}");
    }
    let double = File::default()
        .input("x", 11, &[Some(2), Some(6)])
        .node("Relu x > r", &[])
        .node("Softmax r > y", &[]);
    assert_eq!(names(double.open()), ["relu", "softmax_warp_forward"]);
    let product = File::default().input("x", 11, &[Some(2), Some(6)]).constant("w", &[6, 3], typed(11));
    assert!(product.node("MatMul x, w > y", &[]).refused().contains("8 B elements"));
}

/// A shape that does not fit because of an open dimension names the options that set it.
#[test]
fn open_dimensions_are_named_with_their_options() {
    use super::super::proto::{Dimension, TensorShapeProto, TensorType, TypeProto, ValueInfoProto};
    let model = |names: [Option<&str>; 2]| {
        let mut file = File::default().weight("w", &[6, 5]).node("MatMul x, w > y", &[]);
        let dim =
            names.map(|name| Dimension { dim_value: None, dim_param: name.map(str::to_owned) }).to_vec();
        let tensor_type = Some(TensorType { elem_type: FLOAT, shape: Some(TensorShapeProto { dim }) });
        file.0.input.push(ValueInfoProto { name: "x".to_owned(), r#type: Some(TypeProto { tensor_type }) });
        file
    };
    let named = model([Some("batch"), Some("features")]).refused();
    for says in [
        "do not match",
        "`batch` = 1",
        "`features` = 1",
        "`dimensions=batch:LENGTH/features:LENGTH`",
        "`dimension=LENGTH`",
    ] {
        assert!(named.contains(says), "{named}");
    }
    let unnamed = model([None, None]).refused();
    assert!(unnamed.contains("without a name = 1") && !unnamed.contains("dimensions=`"), "{unnamed}");
    let fits = Dimensions { named: vec![("features".to_owned(), 6)], other: 1 };
    assert!(Onnx::read(model([Some("batch"), Some("features")]).bytes(), &fits).is_ok());
}

/// Models are recognised by their first bytes, as `onnx.save` writes them: version, producer, graph.
#[test]
fn a_model_is_known_by_its_first_bytes() {
    use super::super::is_onnx;
    let graph = b"\x3a\x05\x0a\x03\x0a\x01x";
    let of = |parts: &[&[u8]]| parts.concat();
    assert!(is_onnx(&of(&[b"\x08\x08\x12\x07pytorch\x1a\x032.1", graph])));
    assert!(is_onnx(&of(&[b"\x08\x0a", graph])));
    assert!(is_onnx(&of(&[b"\x08\x07\x28\x01\x42\x02\x10\x0d", graph])));
    assert!(is_onnx(&File::default().input("x", FLOAT, &[Some(2)]).node("Relu x > y", &[]).bytes()));
    for other in [
        &b""[..],
        b"\x08",
        b"\x08\x08",
        b"# text\n",
        b"\x08\x08\x12\x07pytorch",
        b"\x08\x00\x3a\x02\x0a\x00",
        b"\x08\x08\x3a\x02\xff\x00",
    ] {
        assert!(!is_onnx(other), "{other:?}");
    }
}
