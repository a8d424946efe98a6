//! Operators that compute, on real and on quantised numbers.

use config::Diagnostic;

use super::proto::NodeProto;
use super::value::{Value, axis, check_size, integer, width_of};
use super::{Operator, Scope, from_front};
use crate::program::dnn::eager::{broadcast, work};
use crate::program::dnn::kernels::RANK;
use crate::program::dnn::memory::View;

pub(super) type Made = Result<Vec<Value>, Diagnostic>;

/// Operators by name.
pub(super) const OPERATORS: &[(&str, Operator)] = &[
    ("Abs", |s, n| unary(s, n, "abs", work::ONE)),
    ("Add", |s, n| binary(s, n, "add", work::ONE, Some(i64::checked_add))),
    ("And", |s, n| compare(s, n, "and")),
    ("ArgMax", arg_max),
    ("Ceil", |s, n| unary(s, n, "ceil", work::ONE)),
    ("Clip", |s, n| unary(s, n, "clamp", [2, 0])),
    ("Cos", |s, n| unary(s, n, "cos", work::SPECIAL)),
    ("Div", |s, n| binary(s, n, "div", work::DIVIDE, Some(i64::checked_div))),
    ("Elu", |s, n| unary(s, n, "elu", work::SPECIAL)),
    ("Erf", |s, n| unary(s, n, "erf", work::GELU)),
    ("Exp", |s, n| unary(s, n, "exp", work::SPECIAL)),
    ("Floor", |s, n| unary(s, n, "floor", work::ONE)),
    ("Gelu", |s, n| unary(s, n, "gelu", work::GELU)),
    ("Gemm", gemm),
    ("Greater", |s, n| compare(s, n, "gt")),
    ("GreaterOrEqual", |s, n| compare(s, n, "ge")),
    ("HardSigmoid", |s, n| unary(s, n, "hardsigmoid", [3, 0])),
    ("HardSwish", |s, n| unary(s, n, "hardswish", [4, 0])),
    ("LayerNormalization", layer_norm),
    ("LeakyRelu", |s, n| unary(s, n, "leaky_relu", [2, 0])),
    ("Less", |s, n| compare(s, n, "lt")),
    ("LessOrEqual", |s, n| compare(s, n, "le")),
    ("Log", |s, n| unary(s, n, "log", work::SPECIAL)),
    ("MatMul", matmul),
    ("Max", |s, n| several(s, n, "max")),
    ("Mean", mean),
    ("Min", |s, n| several(s, n, "min")),
    ("Mish", |s, n| unary(s, n, "mish", [12, 4])),
    ("Mod", |s, n| binary(s, n, "remainder", work::DIVIDE, Some(i64::checked_rem))),
    ("Mul", |s, n| binary(s, n, "mul", work::ONE, Some(i64::checked_mul))),
    ("Neg", |s, n| unary(s, n, "neg", work::ONE)),
    ("Not", |s, n| unary(s, n, "not", work::ONE)),
    ("Or", |s, n| compare(s, n, "or")),
    ("PRelu", |s, n| binary(s, n, "prelu", [2, 0], None)),
    ("Pow", |s, n| binary(s, n, "pow", work::SPECIAL, None)),
    ("Reciprocal", |s, n| unary(s, n, "reciprocal", work::DIVIDE)),
    ("ReduceL1", |s, n| reduce(s, n, "norm")),
    ("ReduceL2", |s, n| reduce(s, n, "norm")),
    ("ReduceMax", |s, n| reduce(s, n, "max")),
    ("ReduceMean", |s, n| reduce(s, n, "mean")),
    ("ReduceMin", |s, n| reduce(s, n, "min")),
    ("ReduceProd", |s, n| reduce(s, n, "prod")),
    ("ReduceSum", |s, n| reduce(s, n, "sum")),
    ("Relu", |s, n| unary(s, n, "relu", work::ONE)),
    ("Round", |s, n| unary(s, n, "round", work::ONE)),
    ("Selu", |s, n| unary(s, n, "elu", work::SPECIAL)),
    ("Sigmoid", |s, n| unary(s, n, "sigmoid", work::TANH)),
    ("Sign", |s, n| unary(s, n, "sign", [2, 0])),
    ("Sin", |s, n| unary(s, n, "sin", work::SPECIAL)),
    ("Softmax", softmax),
    ("Softplus", |s, n| unary(s, n, "softplus", [8, 2])),
    ("Sqrt", |s, n| unary(s, n, "sqrt", work::SPECIAL)),
    ("Sub", |s, n| binary(s, n, "sub", work::ONE, Some(i64::checked_sub))),
    ("Sum", |s, n| several(s, n, "add")),
    ("Tanh", |s, n| unary(s, n, "tanh", work::TANH)),
];

pub(super) fn one(view: View) -> Made {
    Ok(vec![Value::of(view)])
}

pub(super) fn refuse<T>(what: impl Into<String>) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(what))
}

fn unary(scope: &mut Scope, node: &NodeProto, name: &'static str, work: [u8; 2]) -> Made {
    let x = scope.view(node, 0)?;
    if x.dims.len() > RANK {
        return refuse(format!("a tensor of {} dimensions; at most {RANK}", x.dims.len()));
    }
    one(scope.eager.map(name, &[&x], x.width, work))
}

/// Returns the broadcast dimensions of operands.
///
/// # Errors
/// If operands do not fit, or have too many dimensions.
pub(super) fn together(operands: &[&[u64]]) -> Result<Vec<u64>, Diagnostic> {
    let dims = operands.iter().fold(Vec::new(), |dims, other| broadcast(&dims, other));
    for operand in operands {
        let missing = dims.len() - operand.len();
        if operand.iter().zip(&dims[missing..]).any(|(own, all)| own != all && *own != 1) {
            return refuse(format!("operands of shapes {operands:?} do not match"));
        }
    }
    if dims.len() > RANK {
        return refuse(format!("operands of {} dimensions; at most {RANK}", dims.len()));
    }
    check_size(&dims)?;
    Ok(dims)
}

/// Arithmetic on known numbers; none if it has no result.
type Fold = fn(i64, i64) -> Option<i64>;

fn binary(
    scope: &mut Scope,
    node: &NodeProto,
    name: &'static str,
    work: [u8; 2],
    fold: Option<Fold>,
) -> Made {
    let (a, b) = (scope.input(node, 0)?, scope.input(node, 1)?);
    let dims = together(&[&a.dims, &b.dims])?;
    if let (Some(x), Some(y), Some(fold)) = (&a.known, &b.known, fold) {
        let count = dims.iter().product::<u64>() as usize;
        // Shapes have one dimension: an operand is as long as the result, or one number.
        let pick = |of: &[i64], n: usize| of[if of.len() == 1 { 0 } else { n }];
        let simple = [x, y].iter().all(|of| of.len() == count || of.len() == 1);
        let fold_all = || (0..count).map(|n| fold(pick(x, n), pick(y, n))).collect();
        let folded: Option<Vec<i64>> = if simple { fold_all() } else { None };
        if let Some(folded) = folded {
            return Ok(vec![Value::known(dims, folded)]);
        }
    }
    let (x, y) = (scope.tensor(&a)?, scope.tensor(&b)?);
    let width = x.width.max(y.width);
    one(scope.eager.map(name, &[&x, &y], width, work))
}

/// Executes an operator of any number of inputs, with one kernel less than inputs.
fn several(scope: &mut Scope, node: &NodeProto, name: &'static str) -> Made {
    let mut result = scope.view(node, 0)?;
    for n in 1..node.input.len() {
        let next = scope.view(node, n)?;
        together(&[&result.dims, &next.dims])?;
        result = scope.eager.map(name, &[&result, &next], result.width, work::ONE);
    }
    one(result)
}

fn mean(scope: &mut Scope, node: &NodeProto) -> Made {
    let sum = several(scope, node, "add")?;
    let sum = scope.tensor(&sum[0])?;
    if sum.dims.len() > RANK {
        return refuse(format!("a tensor of {} dimensions; at most {RANK}", sum.dims.len()));
    }
    one(scope.eager.map("mul", &[&sum], sum.width, work::ONE))
}

fn compare(scope: &mut Scope, node: &NodeProto, name: &'static str) -> Made {
    let (x, y) = (scope.view(node, 0)?, scope.view(node, 1)?);
    together(&[&x.dims, &y.dims])?;
    one(scope.eager.map(name, &[&x, &y], 1, work::ONE))
}

/// Checks that a matrix product does not have elements of eight bytes.
pub(super) fn check_product(x: &View) -> Result<(), Diagnostic> {
    if x.width > 4 { refuse("products of 8 B elements are not supported") } else { Ok(()) }
}

fn gemm(scope: &mut Scope, node: &NodeProto) -> Made {
    let (a, b) = (scope.view(node, 0)?, scope.view(node, 1)?);
    check_product(&a)?;
    if a.dims.len() != 2 || b.dims.len() != 2 {
        return refuse(format!("factors of shapes {:?} and {:?} are not matrices", a.dims, b.dims));
    }
    let turned = |x: &View, name| if integer(node, name, 0) == 0 { x.clone() } else { x.permute(&[1, 0]) };
    let a = scope.eager.contiguous(&turned(&a, "transA"));
    let b = turned(&b, "transB");
    if a.dims[1] != b.dims[0] {
        return refuse(format!("factors of shapes {:?} and {:?} do not match", a.dims, b.dims));
    }
    check_size(&[a.dims[0], b.dims[1]])?;
    let summand = scope.maybe(node, 2)?;
    let n = b.dims[1];
    match summand {
        Some(c) if c.count() == n => {
            let c = scope.tensor(&c)?;
            one(scope.eager.affine(&a, &b, Some(&c)))
        }
        Some(c) => {
            together(&[&[a.dims[0], n], &c.dims])?;
            let (product, c) = (scope.eager.affine(&a, &b, None), scope.tensor(&c)?);
            one(scope.eager.map("add", &[&product, &c], a.width, work::ONE))
        }
        None => one(scope.eager.affine(&a, &b, None)),
    }
}

fn matmul(scope: &mut Scope, node: &NodeProto) -> Made {
    let (a, b) = (scope.view(node, 0)?, scope.view(node, 1)?);
    check_product(&a)?;
    let (ra, rb) = (a.dims.len(), b.dims.len());
    if ra < 2 || rb < 2 {
        return refuse("a vector cannot be a factor");
    }
    let (m, k, n) = (a.dims[ra - 2], a.dims[ra - 1], b.dims[rb - 1]);
    if b.dims[rb - 2] != k {
        return refuse(format!("factors of shapes {:?} and {:?} do not match", a.dims, b.dims));
    }
    let batch = together(&[&a.dims[..ra - 2], &b.dims[..rb - 2]])?;
    let count: u64 = batch.iter().product();
    let dims = [batch.as_slice(), &[m, n]].concat();
    for whole in [[m, n], [m, k], [k, n]] {
        check_size(&[batch.as_slice(), &whole].concat())?;
    }
    if b.count() == k * n && a.count() == count * m * k {
        let product = scope.eager.affine(&a.reshape(&[count * m, k]), &b.reshape(&[k, n]), None);
        return one(product.reshape(&dims));
    }
    let mut spread = |x: &View, rows: u64, columns: u64| {
        let whole = [batch.as_slice(), &[rows, columns]].concat();
        let full = if x.count() == count * rows * columns { x.clone() } else { expand(scope, x, &whole) };
        full.reshape(&[count, rows, columns])
    };
    let (a, b) = (spread(&a, m, k), spread(&b, k, n));
    one(scope.eager.matmul(&a, &b).reshape(&dims))
}

/// Copies a tensor, repeated to dimensions.
pub(super) fn expand(scope: &mut Scope, x: &View, dims: &[u64]) -> View {
    let output = scope.eager.empty(dims, x.width);
    scope.eager.map_into("expand", &[x], &output, work::COPY);
    output
}

/// Executes softmax over the last dimension in one kernel; over a different one, on columns: a maximum, a sum, a
/// division.
fn softmax(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    let rank = x.dims.len();
    let along = axis(integer(node, "axis", -1), rank)?;
    if along + 1 == rank {
        return one(scope.eager.softmax(&x));
    }
    if rank > RANK {
        return refuse(format!("a tensor of {rank} dimensions; at most {RANK}"));
    }
    let mut dims = x.dims.clone();
    dims[along] = 1;
    let most = scope.eager.reduce_columns(&x, along).reshape(&dims);
    let sum = scope.eager.reduce_columns(&x, along).reshape(&dims);
    one(scope.eager.map("softmax_spatial", &[&x, &most, &sum], x.width, work::SPECIAL))
}

/// Returns the number of the largest element, of eight bytes.
fn arg_max(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    let rank = x.dims.len();
    if axis(integer(node, "axis", 0), rank)? + 1 != rank {
        return refuse("only the last dimension is supported");
    }
    let found = scope.eager.reduce("argmax", &x, 1, 8);
    if integer(node, "keepdims", 1) == 0 {
        return one(found);
    }
    one(found.reshape(&[&x.dims[..rank - 1], &[1]].concat()))
}

fn layer_norm(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    let from = axis(integer(node, "axis", -1), x.dims.len())?;
    let (rows, row) = x.dims.split_at(from);
    let flat = x.reshape(&[rows.iter().product(), row.iter().product()]);
    let (weight, bias) = (scope.view(node, 1)?, scope.view(node, 2)?);
    if weight.count() != flat.dims[1] || bias.count() != flat.dims[1] {
        return refuse(format!(
            "rows of shape {:?} and weights of shape {:?} do not match",
            flat.dims, weight.dims
        ));
    }
    one(scope.eager.layer_norm(&flat, &weight, &bias).reshape(&x.dims))
}

fn reduce(scope: &mut Scope, node: &NodeProto, name: &'static str) -> Made {
    let x = scope.view(node, 0)?;
    let rank = x.dims.len();
    let axes = match scope.axes(node, 1)? {
        Some(axes) if !axes.is_empty() => from_front(&axes, rank)?,
        _ => (0..rank).collect(),
    };
    let first = axes.first().copied().unwrap_or(0);
    let neighbours = first..first + axes.len();
    if !axes.iter().copied().eq(neighbours.clone()) {
        return refuse(format!(
            "a reduction over dimensions {axes:?} of {rank} is not supported: they are not adjacent"
        ));
    }
    let reduced = if neighbours.end == rank {
        scope.eager.reduce(name, &x, axes.len(), x.width)
    } else {
        let joint: u64 = x.dims[neighbours.clone()].iter().product();
        let dims = [&x.dims[..first], &[joint], &x.dims[neighbours.end..]].concat();
        scope.eager.reduce_columns(&x.reshape(&dims), first)
    };
    let mut dims = x.dims.clone();
    if integer(node, "keepdims", 1) != 0 {
        dims[neighbours].fill(1);
    } else {
        dims.drain(neighbours);
    }
    one(reduced.reshape(&dims))
}

// Operators on quantised numbers, and elements smaller than a byte.

/// Operators by name.
pub(super) const QUANTISED_OPERATORS: &[(&str, Operator)] =
    &[("DequantizeLinear", dequantize), ("QuantizeLinear", quantize)];

/// Dimensions of elements, in which each dimension of the factors is complete or one.
struct Layout {
    dims: Vec<u64>,
    /// Dimensions of the factors.
    factors: Vec<u64>,
}

impl Layout {
    /// Returns the layout of one factor per tensor, per element of a dimension, or per block of one (ONNX,
    /// `DequantizeLinear`).
    fn of(node: &NodeProto, x: &[u64], scale: &[u64]) -> Result<Layout, config::Diagnostic> {
        let count = |dims: &[u64]| dims.iter().product::<u64>();
        if count(scale) == 1 {
            return Ok(Layout { dims: vec![count(x)], factors: vec![1] });
        }
        let at = axis(integer(node, "axis", 1), x.len())?;
        let (outer, length, inner) = (count(&x[..at]), x[at], count(&x[at + 1..]));
        if let [channels] = scale {
            if *channels != length {
                return refuse(format!("{channels} factors for a dimension of {length}"));
            }
            return Ok(Layout { dims: vec![outer, length, inner], factors: vec![1, length, 1] });
        }
        let blocks = scale.get(at).copied().unwrap_or(0);
        let others = scale.len() == x.len() && (0..x.len()).all(|n| n == at || scale[n] == x[n]);
        if !others || blocks == 0 || !length.is_multiple_of(blocks) {
            return refuse(format!("factors of shape {scale:?} do not match a tensor of shape {x:?}"));
        }
        let dims = vec![outer, blocks, length / blocks, inner];
        Ok(Layout { dims, factors: vec![outer, blocks, 1, inner] })
    }

    /// Splits the last dimension into the elements of a byte; none if a byte has elements of two rows.
    fn split(mut self, of_byte: u64) -> Option<Layout> {
        while self.dims.len() > 1 && self.dims.last() == Some(&1) {
            self.dims.pop();
            self.factors.pop();
        }
        let (last, factors) = (self.dims.pop()?, self.factors.pop()?);
        if !last.is_multiple_of(of_byte) {
            return None;
        }
        self.dims.extend([last / of_byte, of_byte]);
        self.factors.extend(if factors == 1 { [1, 1] } else { [last / of_byte, of_byte] });
        Some(self)
    }
}

/// Unpacks the elements of a packed tensor, each into `width` bytes.
pub(super) fn unpacked(scope: &mut Scope, x: &Value, width: u8) -> Made {
    let Some(bytes) = x.packed.as_ref().filter(|bytes| bytes.count() > 0) else {
        return refuse(format!("a tensor of shape {:?} is empty", x.dims));
    };
    let of_byte = x.count().div_ceil(bytes.count());
    // The last byte may have fewer elements: the result has room for all.
    let whole = scope.eager.empty(&[bytes.count(), of_byte], width);
    scope.eager.map_into("cast", &[&bytes.reshape(&[bytes.count(), 1])], &whole, work::ONE);
    one(View::of(whole.tensor, &x.dims, width))
}

/// Dequantises in a kernel of every pass: weights stay as small as in the file, as ONNX Runtime's constant folding
/// skips this operator.
fn dequantize(scope: &mut Scope, node: &NodeProto) -> Made {
    let (x, scale, zero) = (scope.input(node, 0)?, scope.view(node, 1)?, scope.maybe(node, 2)?);
    if x.count() == 0 {
        return refuse(format!("a tensor of shape {:?} is empty", x.dims));
    }
    let mut layout = Layout::of(node, &x.dims, &scale.dims)?;
    let output;
    let input = match &x.packed {
        None => {
            output = scope.eager.empty(&x.dims, scale.width);
            scope.tensor(&x)?.reshape(&layout.dims)
        }
        Some(bytes) if layout.dims.len() == 1 => {
            let of_byte = x.count().div_ceil(bytes.count());
            let whole = scope.eager.empty(&[bytes.count(), of_byte], scale.width);
            layout = Layout { dims: whole.dims.clone(), factors: vec![1, 1] };
            output = View::of(whole.tensor, &x.dims, scale.width);
            bytes.reshape(&[bytes.count(), 1])
        }
        Some(bytes) => {
            let of_byte = x.count().div_ceil(bytes.count());
            let Some(split) = layout.split(of_byte) else {
                return refuse(format!(
                    "a byte holds elements of two rows of shape {:?}, each with its own factor",
                    x.dims
                ));
            };
            layout = split;
            output = scope.eager.empty(&x.dims, scale.width);
            let mut dims = layout.dims.clone();
            dims[layout.dims.len() - 1] = 1;
            bytes.reshape(&dims)
        }
    };
    if layout.dims.len() > RANK {
        return refuse(format!("a tensor of {} dimensions; at most {RANK}", layout.dims.len()));
    }
    let place = View::of(output.tensor, &layout.dims, scale.width);
    // Zero points of less than a byte are left out: there is one for many elements.
    let zero = zero.filter(|zero| zero.packed.is_none() && zero.count() == scale.count());
    let zero = zero.map(|zero| scope.tensor(&zero)).transpose()?;
    let factors: Vec<View> = [Some(scale), zero].into_iter().flatten().collect();
    let factors: Vec<View> = factors.iter().map(|factor| factor.reshape(&layout.factors)).collect();
    let inputs: Vec<&View> = [&input].into_iter().chain(&factors).collect();
    scope.eager.map_into("dequantize", &inputs, &place, [2, 0]);
    one(output)
}

/// Quantises to the type of the zero point; to one byte without one.
fn quantize(scope: &mut Scope, node: &NodeProto) -> Made {
    let (x, scale, zero) = (scope.view(node, 0)?, scope.view(node, 1)?, scope.maybe(node, 2)?);
    let layout = Layout::of(node, &x.dims, &scale.dims)?;
    let stated = match integer(node, "output_dtype", 0) as i32 {
        0 => 1,
        data_type => width_of(data_type)?,
    };
    let zero = zero.map(|zero| scope.tensor(&zero)).transpose()?;
    let width = zero.as_ref().map_or(stated, |zero| zero.width);
    let output = scope.eager.empty(&x.dims, width);
    let zero = zero.filter(|zero| zero.count() == scale.count());
    let factors: Vec<View> =
        [Some(scale), zero].into_iter().flatten().map(|factor| factor.reshape(&layout.factors)).collect();
    let input = x.reshape(&layout.dims);
    let inputs: Vec<&View> = [&input].into_iter().chain(&factors).collect();
    scope.eager.map_into("quantize", &inputs, &output.reshape(&layout.dims), work::DIVIDE);
    one(output)
}
