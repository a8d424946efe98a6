//! Operators that move elements, name them anew, or work on shapes.

use config::Diagnostic;

use super::compute::{expand, together};
use super::proto::NodeProto;
use super::scope::{Operator, Scope, from_front};
use super::value::{KNOWN_MOST, Value, axis, check_size, dims_of, integer, integers, numbers, width_of};
use crate::program::dnn::eager::work;
use crate::program::dnn::kernels::{Ids, RANK};

type Made = Result<Vec<Value>, Diagnostic>;

/// Operators by name.
pub(super) const OPERATORS: &[(&str, Operator)] = &[
    ("Cast", cast),
    ("Concat", concat),
    ("Constant", constant),
    ("ConstantOfShape", constant_of_shape),
    ("Dropout", |s, n| Ok(vec![s.input(n, 0)?])),
    ("Equal", equal),
    ("Expand", expanded),
    ("Flatten", flatten),
    ("Gather", gather),
    ("Identity", |s, n| Ok(vec![s.input(n, 0)?])),
    ("Range", range),
    ("Reshape", reshape),
    ("Shape", shape),
    ("Slice", slice),
    ("Split", split),
    ("Squeeze", squeeze),
    ("Transpose", transpose),
    ("Unsqueeze", unsqueeze),
    ("Where", choose),
];

fn refuse<T>(what: impl Into<String>) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(what))
}

/// A shape as known numbers.
fn list(numbers: Vec<i64>) -> Value {
    Value::known(vec![numbers.len() as u64], numbers)
}

fn cast(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.input(node, 0)?;
    let width = width_of(integer(node, "to", 1) as i32)?;
    if x.known.is_some() {
        return Ok(vec![x]);
    }
    let view = scope.tensor(&x)?;
    if view.dims.len() > RANK {
        return refuse(format!("a tensor of {} dimensions; at most {RANK}", view.dims.len()));
    }
    Ok(vec![Value::of(scope.eager.map("cast", &[&view], width, work::ONE))])
}

fn constant(_: &mut Scope, node: &NodeProto) -> Made {
    if let Some(tensor) = node.attribute.iter().find(|a| a.name == "value").and_then(|a| a.t.as_ref()) {
        let dims = dims_of(&tensor.dims)?;
        let known = numbers(tensor, dims.iter().product());
        return Ok(vec![Value { dims, width: width_of(tensor.data_type)?, view: None, known }]);
    }
    if let Some(ints) = integers(node, "value_ints") {
        return Ok(vec![list(ints.to_vec())]);
    }
    match node.attribute.first().map(|a| a.name.as_str()) {
        Some("value_int") => Ok(vec![Value::known(Vec::new(), vec![integer(node, "value_int", 0)])]),
        Some("value_float") => Ok(vec![Value { dims: Vec::new(), width: 4, view: None, known: None }]),
        other => refuse(format!("attribute {other:?} is not supported")),
    }
}

fn constant_of_shape(scope: &mut Scope, node: &NodeProto) -> Made {
    let dims = dims_of(&scope.known(node, 0)?)?;
    let value = node.attribute.iter().find(|a| a.name == "value").and_then(|a| a.t.as_ref());
    let width = value.map_or(Ok(4), |t| width_of(t.data_type))?;
    let known = value.and_then(|t| numbers(t, 1)).filter(|_| dims.len() == 1 && dims[0] <= KNOWN_MOST);
    if let Some(known) = known {
        return Ok(vec![list(vec![known[0]; dims[0] as usize])]);
    }
    if dims.len() > RANK || dims.contains(&0) {
        return refuse(format!("a tensor of {dims:?} elements"));
    }
    Ok(vec![Value::of(scope.eager.fill(&dims, width))])
}

fn shape(scope: &mut Scope, node: &NodeProto) -> Made {
    Ok(vec![list(scope.input(node, 0)?.dims.iter().map(|d| *d as i64).collect())])
}

fn reshape(scope: &mut Scope, node: &NodeProto) -> Made {
    let (x, wanted) = (scope.input(node, 0)?, scope.known(node, 1)?);
    let copied = |n: usize, d: i64| if d == 0 { x.dims.get(n).map_or(0, |d| *d as i64) } else { d };
    let mut dims: Vec<i64> = wanted.iter().enumerate().map(|(n, d)| copied(n, *d)).collect();
    let rest = dims.iter().filter(|d| **d != -1).try_fold(1_i64, |rest, d| rest.checked_mul(*d)).unwrap_or(0);
    if let Some(open) = dims.iter().position(|d| *d == -1) {
        dims[open] = if rest > 0 { x.count() as i64 / rest } else { 0 };
    }
    let dims = dims_of(&dims)?;
    if dims.iter().product::<u64>() != x.count() {
        return refuse(format!("{:?} elements as {wanted:?}", x.dims));
    }
    Ok(vec![x.reshape(dims)])
}

fn flatten(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.input(node, 0)?;
    let at = integer(node, "axis", 1);
    let at = if at < 0 { at + x.dims.len() as i64 } else { at };
    let Some((rows, row)) = usize::try_from(at).ok().and_then(|at| x.dims.split_at_checked(at)) else {
        return refuse(format!("dimension {at} of a tensor with {}", x.dims.len()));
    };
    Ok(vec![x.reshape(vec![rows.iter().product(), row.iter().product()])])
}

fn squeeze(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.input(node, 0)?;
    let axes = match scope.axes(node, 1)? {
        Some(axes) => from_front(&axes, x.dims.len())?,
        None => (0..x.dims.len()).filter(|n| x.dims[*n] == 1).collect(),
    };
    if axes.iter().any(|n| x.dims[*n] != 1) {
        return refuse(format!("dimensions {axes:?} of {:?} are not all one", x.dims));
    }
    let kept = x.dims.iter().enumerate().filter(|(n, _)| !axes.contains(n)).map(|(_, d)| *d).collect();
    Ok(vec![x.reshape(kept)])
}

fn unsqueeze(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.input(node, 0)?;
    let axes = scope.axes(node, 1)?.unwrap_or_default();
    let axes = from_front(&axes, x.dims.len() + axes.len())?;
    let mut dims = x.dims.clone();
    for n in axes {
        dims.insert(n.min(dims.len()), 1);
    }
    Ok(vec![x.reshape(dims)])
}

fn transpose(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.view(node, 0)?;
    let rank = x.dims.len();
    let order: Vec<usize> = match integers(node, "perm") {
        Some(perm) => perm.iter().map(|n| axis(*n, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) || rank > RANK {
        return refuse(format!("order {order:?} of {rank} dimensions"));
    }
    let turned = x.permute(&order);
    if turned.is_contiguous() {
        return Ok(vec![Value::of(turned.reshape(&turned.dims))]);
    }
    Ok(vec![Value::of(scope.eager.map("transpose", &[&turned], x.width, work::COPY))])
}

fn concat(scope: &mut Scope, node: &NodeProto) -> Made {
    let inputs: Vec<Value> = (0..node.input.len()).map(|n| scope.input(node, n)).collect::<Result<_, _>>()?;
    let Some(first) = inputs.first() else { return refuse("nothing to put together") };
    let at = axis(integer(node, "axis", 0), first.dims.len())?;
    let fits = |x: &Value| {
        let same = |n: usize| n == at || x.dims[n] == first.dims[n];
        x.dims.len() == first.dims.len() && (0..x.dims.len()).all(same)
    };
    if !inputs.iter().all(fits) || first.dims.len() > RANK {
        return refuse("its inputs do not fit");
    }
    let known: Option<Vec<&Vec<i64>>> = inputs.iter().map(|x| x.known.as_ref()).collect();
    if let Some(known) = known.filter(|_| first.dims.len() == 1) {
        return Ok(vec![list(known.into_iter().flatten().copied().collect())]);
    }
    let mut dims = first.dims.clone();
    dims[at] = inputs.iter().map(|x| x.dims[at]).sum();
    check_size(&dims)?;
    let views: Vec<_> = inputs.iter().map(|x| scope.tensor(x)).collect::<Result<_, _>>()?;
    let output = scope.eager.empty(&dims, first.width);
    scope.eager.cat_into(&views.iter().collect::<Vec<_>>(), at, &output);
    Ok(vec![Value::of(output)])
}

/// A piece along a dimension: a copy, unless it is the whole.
fn piece(scope: &mut Scope, x: &Value, at: usize, from: u64, length: u64) -> Result<Value, Diagnostic> {
    if length == x.dims[at] {
        return Ok(x.clone());
    }
    if let Some(known) = x.known.as_ref().filter(|_| x.dims.len() == 1) {
        return Ok(list(known[from as usize..(from + length) as usize].to_vec()));
    }
    if length == 0 || x.dims.len() > RANK {
        return refuse(format!("{length} of {:?} elements", x.dims));
    }
    let part = scope.tensor(x)?.slice(at, from, length);
    Ok(Value::of(scope.eager.map("slice", &[&part], x.width, work::COPY)))
}

fn slice(scope: &mut Scope, node: &NodeProto) -> Made {
    let mut x = scope.input(node, 0)?;
    let of = |scope: &Scope, name: &str, n: usize| match integers(node, name) {
        Some(given) => Ok(given.to_vec()),
        None => scope.known(node, n),
    };
    let (starts, ends) = (of(scope, "starts", 1)?, of(scope, "ends", 2)?);
    let axes = scope.axes(node, 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = if node.input.len() > 4 { scope.known(node, 4)? } else { vec![1; starts.len()] };
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return refuse(format!("{} starts, {} ends, {} steps", starts.len(), ends.len(), steps.len()));
    }
    if steps.iter().any(|step| *step != 1) {
        return refuse(format!("steps {steps:?}; only 1 is supported"));
    }
    for ((start, end), along) in starts.iter().zip(&ends).zip(&axes) {
        let at = axis(*along, x.dims.len())?;
        let length = x.dims[at] as i64;
        let place = |n: i64| if n < 0 { n.saturating_add(length) } else { n }.clamp(0, length);
        let (from, to) = (place(*start), place(*end));
        x = piece(scope, &x, at, from as u64, (to - from).max(0) as u64)?;
    }
    Ok(vec![x])
}

fn split(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.input(node, 0)?;
    let at = axis(integer(node, "axis", 0), x.dims.len())?;
    let parts = node.output.len() as u64;
    let sizes: Vec<u64> = match integers(node, "split") {
        Some(sizes) => dims_of(sizes)?,
        None if scope.maybe(node, 1)?.is_some() => dims_of(&scope.known(node, 1)?)?,
        None => {
            let each = x.dims[at].div_ceil(parts.max(1));
            (0..parts).map(|n| each.min(x.dims[at].saturating_sub(n * each))).collect()
        }
    };
    if sizes.iter().sum::<u64>() != x.dims[at] {
        return refuse(format!("{:?} elements in pieces of {sizes:?}", x.dims));
    }
    let mut from = 0;
    let mut pieces = Vec::new();
    for size in sizes {
        pieces.push(piece(scope, &x, at, from, size)?);
        from += size;
    }
    Ok(pieces)
}

fn gather(scope: &mut Scope, node: &NodeProto) -> Made {
    let (x, picked) = (scope.input(node, 0)?, scope.input(node, 1)?);
    let at = axis(integer(node, "axis", 0), x.dims.len())?;
    if let Some(numbers) = &picked.known {
        let length = x.dims[at] as i64;
        let places: Vec<i64> = numbers.iter().map(|n| if *n < 0 { n + length } else { *n }).collect();
        if let Some(outside) = places.iter().find(|n| !(0..length).contains(*n)) {
            return refuse(format!("element {outside} of {length}"));
        }
        if let Some(known) = x.known.as_ref().filter(|_| x.dims.len() == 1) {
            let found = places.iter().map(|n| known[*n as usize]).collect();
            return Ok(vec![Value::known(picked.dims, found)]);
        }
        // One of a dimension's elements, which then is no dimension any more.
        if let ([place], []) = (places.as_slice(), picked.dims.as_slice()) {
            let found = piece(scope, &x, at, *place as u64, 1)?;
            let mut dims = x.dims.clone();
            dims.remove(at);
            return Ok(vec![found.reshape(dims)]);
        }
    }
    if at != 0 {
        return refuse("only the first dimension is supported, unless one element is picked");
    }
    let row: u64 = x.dims[1..].iter().product();
    check_size(&[picked.count(), row])?;
    let (table, numbers) = (scope.tensor(&x)?, scope.tensor(&picked)?);
    let flat = table.reshape(&[x.dims[0], row]);
    let found = scope.eager.embedding(&flat, &numbers, Ids::Words);
    Ok(vec![Value::of(found.reshape(&[picked.dims.as_slice(), &x.dims[1..]].concat()))])
}

fn expanded(scope: &mut Scope, node: &NodeProto) -> Made {
    let (x, wanted) = (scope.input(node, 0)?, dims_of(&scope.known(node, 1)?)?);
    let dims = together(&[&x.dims, &wanted])?;
    if dims == x.dims {
        return Ok(vec![x]);
    }
    let view = scope.tensor(&x)?;
    Ok(vec![Value::of(expand(scope, &view, &dims))])
}

fn range(scope: &mut Scope, node: &NodeProto) -> Made {
    let number = |n| scope.known(node, n).map(|all| all.first().copied().unwrap_or(0));
    let (from, to, step) = (number(0)?, number(1)?, number(2)?);
    if step <= 0 || to.saturating_sub(from) / step > KNOWN_MOST as i64 {
        return refuse(format!("from {from} to {to} in steps of {step}"));
    }
    Ok(vec![list((from..to).step_by(step as usize).collect())])
}

fn equal(scope: &mut Scope, node: &NodeProto) -> Made {
    let (a, b) = (scope.input(node, 0)?, scope.input(node, 1)?);
    let dims = together(&[&a.dims, &b.dims])?;
    if let (Some(x), Some(y)) = (&a.known, &b.known)
        && [x.len(), y.len()] == [dims.iter().product::<u64>() as usize; 2]
    {
        return Ok(vec![Value::known(dims, x.iter().zip(y).map(|(x, y)| i64::from(x == y)).collect())]);
    }
    let (x, y) = (scope.tensor(&a)?, scope.tensor(&b)?);
    Ok(vec![Value::of(scope.eager.map("eq", &[&x, &y], 1, work::ONE))])
}

fn choose(scope: &mut Scope, node: &NodeProto) -> Made {
    let all: Vec<Value> = (0..3).map(|n| scope.input(node, n)).collect::<Result<_, _>>()?;
    let dims = together(&[&all[0].dims, &all[1].dims, &all[2].dims])?;
    let known: Option<Vec<&Vec<i64>>> = all.iter().map(|x| x.known.as_ref()).collect();
    if let Some([which, yes, no]) = known.as_deref()
        && [which, yes, no].iter().all(|all| all.len() as u64 == dims.iter().product::<u64>())
    {
        let pick = |n: usize| if which[n] != 0 { yes[n] } else { no[n] };
        return Ok(vec![Value::known(dims, (0..which.len()).map(pick).collect())]);
    }
    let views: Vec<_> = all.iter().map(|x| scope.tensor(x)).collect::<Result<_, _>>()?;
    let width = views[1].width.max(views[2].width);
    Ok(vec![Value::of(scope.eager.map("where", &[&views[0], &views[1], &views[2]], width, work::ONE))])
}
