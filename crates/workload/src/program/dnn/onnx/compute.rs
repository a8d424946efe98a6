//! Operators that compute.

use config::Diagnostic;

use super::proto::NodeProto;
use super::scope::{Operator, Scope, from_front};
use super::value::{Value, axis, check_size, integer, integers, text};
use crate::program::dnn::eager::{Window, broadcast, work};
use crate::program::dnn::kernels::RANK;
use crate::program::dnn::view::View;

type Made = Result<Vec<Value>, Diagnostic>;

/// Operators by name.
pub(super) const OPERATORS: &[(&str, Operator)] = &[
    ("Abs", |s, n| unary(s, n, "abs", work::ONE)),
    ("Add", |s, n| binary(s, n, "add", work::ONE, Some(i64::checked_add))),
    ("And", |s, n| compare(s, n, "and")),
    ("AveragePool", |s, n| pool(s, n, "avg_pool")),
    ("BatchNormalization", batch_norm),
    ("Clip", |s, n| unary(s, n, "clamp", [2, 0])),
    ("Conv", conv),
    ("Div", |s, n| binary(s, n, "div", work::DIVIDE, Some(i64::checked_div))),
    ("Erf", |s, n| unary(s, n, "erf", work::GELU)),
    ("Exp", |s, n| unary(s, n, "exp", work::SPECIAL)),
    ("Gelu", |s, n| unary(s, n, "gelu", work::GELU)),
    ("Gemm", gemm),
    ("GlobalAveragePool", global_average),
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
    ("Max", |s, n| binary(s, n, "max", work::ONE, None)),
    ("MaxPool", |s, n| pool(s, n, "max_pool")),
    ("Min", |s, n| binary(s, n, "min", work::ONE, None)),
    ("Mul", |s, n| binary(s, n, "mul", work::ONE, Some(i64::checked_mul))),
    ("Neg", |s, n| unary(s, n, "neg", work::ONE)),
    ("Not", |s, n| unary(s, n, "not", work::ONE)),
    ("Or", |s, n| compare(s, n, "or")),
    ("Pow", |s, n| binary(s, n, "pow", work::SPECIAL, None)),
    ("Reciprocal", |s, n| unary(s, n, "reciprocal", work::DIVIDE)),
    ("ReduceMax", |s, n| reduce(s, n, "max")),
    ("ReduceMean", |s, n| reduce(s, n, "mean")),
    ("ReduceMin", |s, n| reduce(s, n, "min")),
    ("ReduceSum", |s, n| reduce(s, n, "sum")),
    ("Relu", |s, n| unary(s, n, "relu", work::ONE)),
    ("Sigmoid", |s, n| unary(s, n, "sigmoid", work::TANH)),
    ("Softmax", softmax),
    ("Sqrt", |s, n| unary(s, n, "sqrt", work::SPECIAL)),
    ("Sub", |s, n| binary(s, n, "sub", work::ONE, Some(i64::checked_sub))),
    ("Tanh", |s, n| unary(s, n, "tanh", work::TANH)),
];

fn one(view: View) -> Made {
    Ok(vec![Value::of(view)])
}

fn refuse<T>(what: impl Into<String>) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(what))
}

fn unary(scope: &mut Scope, node: &NodeProto, name: &'static str, work: [u8; 2]) -> Made {
    let x = scope.view(node, 0)?;
    if x.dims.len() > RANK {
        return refuse(format!("a tensor of {} dimensions; at most {RANK}", x.dims.len()));
    }
    one(scope.eager.map(name, &[&x], x.width, work))
}

/// Dimensions of operands together.
///
/// # Errors
/// Operands that do not fit, or have too many dimensions.
pub(super) fn together(operands: &[&[u64]]) -> Result<Vec<u64>, Diagnostic> {
    let dims = operands.iter().fold(Vec::new(), |dims, other| broadcast(&dims, other));
    for operand in operands {
        let missing = dims.len() - operand.len();
        if operand.iter().zip(&dims[missing..]).any(|(own, all)| own != all && *own != 1) {
            return refuse(format!("operands of {operands:?} elements do not fit"));
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

fn compare(scope: &mut Scope, node: &NodeProto, name: &'static str) -> Made {
    let (x, y) = (scope.view(node, 0)?, scope.view(node, 1)?);
    together(&[&x.dims, &y.dims])?;
    one(scope.eager.map(name, &[&x, &y], 1, work::ONE))
}

/// A matrix product of elements that are no numbers of eight bytes.
fn check_product(x: &View) -> Result<(), Diagnostic> {
    if x.width > 4 { refuse("products of 8 B elements are not supported") } else { Ok(()) }
}

fn gemm(scope: &mut Scope, node: &NodeProto) -> Made {
    let (a, b) = (scope.view(node, 0)?, scope.view(node, 1)?);
    check_product(&a)?;
    if a.dims.len() != 2 || b.dims.len() != 2 {
        return refuse(format!("factors of {:?} and {:?} elements are no matrices", a.dims, b.dims));
    }
    let turned = |x: &View, name| if integer(node, name, 0) == 0 { x.clone() } else { x.permute(&[1, 0]) };
    let a = scope.eager.contiguous(&turned(&a, "transA"));
    let b = turned(&b, "transB");
    if a.dims[1] != b.dims[0] {
        return refuse(format!("factors of {:?} and {:?} elements do not fit", a.dims, b.dims));
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
        return refuse("a vector as a factor is not supported");
    }
    let (m, k, n) = (a.dims[ra - 2], a.dims[ra - 1], b.dims[rb - 1]);
    if b.dims[rb - 2] != k {
        return refuse(format!("factors of {:?} and {:?} elements do not fit", a.dims, b.dims));
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

/// A tensor repeated to dimensions: a copy.
pub(super) fn expand(scope: &mut Scope, x: &View, dims: &[u64]) -> View {
    let output = scope.eager.empty(dims, x.width);
    scope.eager.map_into("expand", &[x], &output, work::COPY);
    output
}

/// Strides, dilations and paddings at most.
const WINDOW_MOST: u64 = 1 << 16;

/// The window of a convolution or a pooling over images.
///
/// # Errors
/// A window that does not fit, or makes an image of more than `outputs` channels too large.
fn window(node: &NodeProto, size: [u64; 2], input: &View, outputs: u64) -> Result<Window, Diagnostic> {
    let numbers = |name: &str, default: u64, count: usize| -> Result<Vec<u64>, Diagnostic> {
        let Some(given) = integers(node, name) else { return Ok(vec![default; count]) };
        let all: Vec<u64> = given.iter().filter_map(|n| u64::try_from(*n).ok()).collect();
        let all: Vec<u64> = all.into_iter().filter(|n| *n <= WINDOW_MOST).collect();
        if all.len() == count { Ok(all) } else { refuse(format!("attribute `{name}` is {given:?}")) }
    };
    let two = |name: &str| numbers(name, 1, 2).map(|n| [n[0], n[1]]);
    let (stride, dilation, pads) = (two("strides")?, two("dilations")?, numbers("pads", 0, 4)?);
    if stride.contains(&0) || dilation.contains(&0) || size.contains(&0) {
        return refuse("a window, stride or dilation of zero");
    }
    let mut window = Window { size, stride, dilation, pad: [pads[0], pads[1], pads[2], pads[3]] };
    let image = [input.dims[2], input.dims[3]];
    match text(node, "auto_pad").as_str() {
        "" | "NOTSET" => {}
        "VALID" => window.pad = [0; 4],
        side @ ("SAME_UPPER" | "SAME_LOWER") => {
            for n in 0..2 {
                let reach = dilation[n] * (size[n] - 1) + 1;
                let all = ((image[n].div_ceil(stride[n]) - 1) * stride[n] + reach).saturating_sub(image[n]);
                let (less, more) = (all / 2, all.div_ceil(2));
                let (front, back) = if side == "SAME_UPPER" { (less, more) } else { (more, less) };
                (window.pad[n], window.pad[n + 2]) = (front, back);
            }
        }
        other => return refuse(format!("auto_pad `{other}` is not supported")),
    }
    match window.out(image) {
        Some(out) => check_size(&[input.dims[0], outputs, out[0], out[1]]).map(|()| window),
        None => refuse(format!("a window of {size:?} does not fit an image of {image:?}")),
    }
}

/// Images with two dimensions.
fn images(x: &View) -> Result<(), Diagnostic> {
    if x.dims.len() == 4 {
        return Ok(());
    }
    refuse(format!("images of {} dimensions; only two are supported", x.dims.len().saturating_sub(2)))
}

fn conv(scope: &mut Scope, node: &NodeProto) -> Made {
    let (x, filter) = (scope.view(node, 0)?, scope.view(node, 1)?);
    images(&x)?;
    images(&filter)?;
    check_product(&x)?;
    let groups = integer(node, "group", 1).max(1) as u64;
    if Some(x.dims[1]) != filter.dims[1].checked_mul(groups) || !filter.dims[0].is_multiple_of(groups) {
        return refuse(format!("images {:?} and filters {:?} in {groups} groups", x.dims, filter.dims));
    }
    let window = window(node, [filter.dims[2], filter.dims[3]], &x, filter.dims[0])?;
    let bias = match scope.maybe(node, 2)? {
        Some(bias) if bias.count() == filter.dims[0] => Some(scope.tensor(&bias)?),
        Some(bias) => {
            return refuse(format!("a bias of {:?} elements for filters {:?}", bias.dims, filter.dims));
        }
        None => None,
    };
    one(scope.eager.conv(&x, &filter, bias.as_ref(), window, groups))
}

fn pool(scope: &mut Scope, node: &NodeProto, name: &'static str) -> Made {
    let x = scope.view(node, 0)?;
    images(&x)?;
    let size = match integers(node, "kernel_shape") {
        Some([a, b]) if [a, b].iter().all(|n| (1..=WINDOW_MOST as i64).contains(*n)) => {
            [*a as u64, *b as u64]
        }
        other => return refuse(format!("a window of {other:?}")),
    };
    let window = window(node, size, &x, x.dims[1])?;
    if integer(node, "ceil_mode", 0) != 0 || window.dilation != [1, 1] {
        return refuse("ceil_mode and dilations are not supported");
    }
    one(scope.eager.pool(name, &x, window))
}

fn global_average(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    images(&x)?;
    let mean = scope.eager.reduce("mean", &x, 2, x.width);
    one(mean.reshape(&[x.dims[0], x.dims[1], 1, 1]))
}

fn batch_norm(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    let mut channel = |n| scope.view(node, n);
    let all = [channel(3)?, channel(4)?, channel(1)?, channel(2)?];
    if x.dims.len() < 2 || x.dims.len() > RANK || all.iter().any(|c| c.count() != x.dims[1]) {
        return refuse(format!("a tensor of {:?} elements and its channels do not fit", x.dims));
    }
    one(scope.eager.batch_norm(&x, [&all[0], &all[1], &all[2], &all[3]]))
}

fn softmax(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    if axis(integer(node, "axis", -1), x.dims.len())? + 1 != x.dims.len() {
        return refuse("only the last dimension is supported");
    }
    one(scope.eager.softmax(&x))
}

fn layer_norm(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    let from = axis(integer(node, "axis", -1), x.dims.len())?;
    let (rows, row) = x.dims.split_at(from);
    let flat = x.reshape(&[rows.iter().product(), row.iter().product()]);
    let (weight, bias) = (scope.view(node, 1)?, scope.view(node, 2)?);
    if weight.count() != flat.dims[1] || bias.count() != flat.dims[1] {
        return refuse(format!("rows of {:?} and weights of {:?} elements", flat.dims, weight.dims));
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
    let is_tail = axes.iter().copied().eq(rank - axes.len()..rank);
    let reduced = if is_tail {
        scope.eager.reduce(name, &x, axes.len(), x.width)
    } else if let [only] = axes.as_slice() {
        scope.eager.reduce_columns(&x, *only)
    } else {
        return refuse(format!("a reduction over dimensions {axes:?} of {rank}"));
    };
    let mut dims = x.dims.clone();
    if integer(node, "keepdims", 1) != 0 {
        axes.iter().for_each(|n| dims[*n] = 1);
        return one(reduced.reshape(&dims));
    }
    one(reduced)
}
