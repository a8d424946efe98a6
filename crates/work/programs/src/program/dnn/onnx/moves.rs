//! Operators that move elements, as copies unless all stay in place; that rename elements; or that work on shapes.

use config::Diagnostic;

use super::compute::{Made, expand, refuse, together, unpacked};
use super::proto::{NodeProto, TensorProto};
use super::value::{
    KNOWN_MOST, Value, axis, check_size, dims_of, first_number, integer, integers, numbers, text, width_of,
};
use super::{Operator, Scope, from_front};
use crate::program::dnn::eager::work;
use crate::program::dnn::kernels::{Ids, RANK};

/// Operators by name.
pub(super) const OPERATORS: &[(&str, Operator)] = &[
    ("Concat", concat),
    ("Expand", expanded),
    ("Gather", gather),
    ("Pad", pad),
    ("Slice", slice),
    ("Split", split),
    ("Tile", tile),
    ("Transpose", transpose),
    ("Trilu", |s, n| copy(s, n, "triu_tril")),
];

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
        return refuse(format!("order {order:?} does not match {rank} dimensions"));
    }
    let turned = x.permute(&order);
    if turned.is_contiguous() {
        return Ok(vec![Value::of(turned.reshape(&turned.dims))]);
    }
    Ok(vec![Value::of(scope.eager.map("transpose", &[&turned], x.width, work::COPY))])
}

fn concat(scope: &mut Scope, node: &NodeProto) -> Made {
    let inputs: Vec<Value> = (0..node.input.len()).map(|n| scope.input(node, n)).collect::<Result<_, _>>()?;
    let Some(first) = inputs.first() else { return refuse("no tensors to concatenate") };
    let at = axis(integer(node, "axis", 0), first.dims.len())?;
    let fits = |x: &Value| {
        let same = |n: usize| n == at || x.dims[n] == first.dims[n];
        x.dims.len() == first.dims.len() && (0..x.dims.len()).all(same)
    };
    if !inputs.iter().all(fits) || first.dims.len() > RANK {
        return refuse("its inputs do not match");
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

/// Copies a tensor under a kernel name.
fn copy(scope: &mut Scope, node: &NodeProto, name: &'static str) -> Made {
    let x = scope.view(node, 0)?;
    if x.dims.len() > RANK {
        return refuse(format!("a tensor of {} dimensions; at most {RANK}", x.dims.len()));
    }
    Ok(vec![Value::of(scope.eager.map(name, &[&x], x.width, work::COPY))])
}

/// Takes every `step`th element of a dimension, `length` of them: a copy, unless it is the whole.
fn piece(
    scope: &mut Scope,
    x: &Value,
    at: usize,
    from: u64,
    length: u64,
    step: u64,
) -> Result<Value, Diagnostic> {
    if length == x.dims[at] {
        return Ok(x.clone());
    }
    if let Some(known) = x.known.as_ref().filter(|_| x.dims.len() == 1) {
        return Ok(list(
            known[from as usize..].iter().step_by(step as usize).take(length as usize).copied().collect(),
        ));
    }
    if length == 0 || x.dims.len() > RANK {
        return refuse(format!("a slice of {length} from shape {:?} is not supported", x.dims));
    }
    let mut part = scope.tensor(x)?.slice(at, from, length);
    part.strides[at] *= step;
    Ok(Value::of(scope.eager.map("slice", &[&part], x.width, work::COPY)))
}

/// Places a tensor in a larger one, which is filled first.
fn pad(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.input(node, 0)?;
    let mode = text(node, "mode");
    if !matches!(mode.as_str(), "" | "constant") {
        return refuse(format!("mode `{mode}` is not supported; use `constant`"));
    }
    let given = match integers(node, "pads") {
        Some(pads) => pads.to_vec(),
        None => scope.known(node, 1)?,
    };
    let rank = x.dims.len();
    let axes = match scope.maybe(node, 3)? {
        Some(_) => from_front(&scope.known(node, 3)?, rank)?,
        None => (0..rank).collect(),
    };
    if given.len() != 2 * axes.len() || given.iter().any(|n| !(0..=1 << 16).contains(n)) {
        return refuse(format!(
            "widths {given:?} do not match {rank} dimensions, or are not from 0 to 65536"
        ));
    }
    if given.iter().all(|n| *n == 0) {
        return Ok(vec![x]);
    }
    let (mut dims, mut front) = (x.dims.clone(), vec![0; rank]);
    for (n, at) in axes.iter().enumerate() {
        front[*at] = given[n] as u64;
        dims[*at] += (given[n] + given[n + axes.len()]) as u64;
    }
    check_size(&dims)?;
    if rank > RANK {
        return refuse(format!("a tensor of {rank} dimensions; at most {RANK}"));
    }
    let view = scope.tensor(&x)?;
    let output = scope.eager.fill(&dims, x.width);
    let inner = (0..rank).fold(output.clone(), |inner, at| inner.slice(at, front[at], x.dims[at]));
    scope.eager.map_into("copy", &[&view], &inner, work::COPY);
    Ok(vec![Value::of(output)])
}

/// Copies a tensor several times along its dimensions.
fn tile(scope: &mut Scope, node: &NodeProto) -> Made {
    let (x, repeats) = (scope.input(node, 0)?, dims_of(&scope.known(node, 1)?)?);
    if repeats.len() != x.dims.len() || repeats.contains(&0) {
        return refuse(format!("repeats {repeats:?} of shape {:?} are not supported", x.dims));
    }
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (d, times) in x.dims.iter().zip(&repeats) {
        if *times > 1 {
            from.push(1);
            to.push(*times);
        }
        from.push(*d);
        to.push(*d);
    }
    let dims: Option<Vec<u64>> =
        x.dims.iter().zip(&repeats).map(|(d, times)| d.checked_mul(*times)).collect();
    let Some(dims) = dims.filter(|_| to.len() <= RANK) else {
        return refuse(format!("repeats {repeats:?} of shape {:?} are not supported", x.dims));
    };
    check_size(&dims)?;
    let view = scope.tensor(&x)?.reshape(&from);
    let output = scope.eager.empty(&dims, x.width);
    scope.eager.map_into("repeat", &[&view], &output.reshape(&to), work::COPY);
    Ok(vec![Value::of(output)])
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
        return refuse(format!(
            "the numbers of starts, ends and steps differ: {}, {}, {}",
            starts.len(),
            ends.len(),
            steps.len()
        ));
    }
    for (((start, end), along), step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        let at = axis(*along, x.dims.len())?;
        let length = x.dims[at] as i64;
        let place = |n: i64| if n < 0 { n.saturating_add(length) } else { n };
        if *step < 0 {
            x = backwards(&x, [place(*start), place(*end).max(-1), *step])?;
            continue;
        }
        if *step == 0 {
            return refuse("a step is 0");
        }
        let (from, to) = (place(*start).clamp(0, length), place(*end).clamp(0, length));
        let count = ((to - from).max(0) as u64).div_ceil(*step as u64);
        x = piece(scope, &x, at, from as u64, count, *step as u64)?;
    }
    Ok(vec![x])
}

/// Returns known numbers in reverse order.
fn backwards(x: &Value, [start, end, step]: [i64; 3]) -> Result<Value, Diagnostic> {
    let Some(known) = x.known.as_ref().filter(|_| x.dims.len() == 1) else {
        return refuse(format!(
            "a step of {step} through a tensor that is unknown before the model runs is not supported"
        ));
    };
    let first = start.min(known.len() as i64 - 1);
    let places =
        std::iter::successors(Some(first), |n| n.checked_add(step)).take_while(|n| *n > end && *n >= 0);
    Ok(list(places.map(|n| known[n as usize]).collect()))
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
        return refuse(format!("shape {:?} cannot be split into {sizes:?}", x.dims));
    }
    let mut from = 0;
    let mut pieces = Vec::new();
    for size in sizes {
        pieces.push(piece(scope, &x, at, from, size, 1)?);
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
            return refuse(format!("index {outside} is out of range for length {length}"));
        }
        if let Some(known) = x.known.as_ref().filter(|_| x.dims.len() == 1) {
            let found = places.iter().map(|n| known[*n as usize]).collect();
            return Ok(vec![Value::known(picked.dims, found)]);
        }
        // A single element of a dimension is picked, which removes the dimension.
        if let ([place], []) = (places.as_slice(), picked.dims.as_slice()) {
            let found = piece(scope, &x, at, *place as u64, 1, 1)?;
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

// Operators that rename elements, or work on shapes.

/// Operators by name.
pub(super) const SHAPE_OPERATORS: &[(&str, Operator)] = &[
    ("Cast", cast),
    ("ConstantOfShape", constant_of_shape),
    ("Dropout", |s, n| Ok(vec![s.input(n, 0)?])),
    ("Equal", equal),
    ("Flatten", flatten),
    ("Identity", |s, n| Ok(vec![s.input(n, 0)?])),
    ("Range", range),
    ("Reshape", reshape),
    ("Shape", shape),
    ("Squeeze", squeeze),
    ("Unsqueeze", unsqueeze),
    ("Where", choose),
];

/// Returns a shape as known numbers.
pub(super) fn list(numbers: Vec<i64>) -> Value {
    Value::known(vec![numbers.len() as u64], numbers)
}

fn cast(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.input(node, 0)?;
    let width = width_of(integer(node, "to", 1) as i32)?;
    if x.known.is_some() {
        return Ok(vec![x]);
    }
    if x.packed.is_some() {
        return unpacked(scope, &x, width);
    }
    let view = scope.tensor(&x)?;
    if view.dims.len() > RANK {
        return refuse(format!("a tensor of {} dimensions; at most {RANK}", view.dims.len()));
    }
    Ok(vec![Value::of(scope.eager.map("cast", &[&view], width, work::ONE))])
}

/// Returns the tensor of a `Constant`.
///
/// # Errors
/// If it is a text, or the operator does not have the attribute.
pub(super) fn constant_of(node: &NodeProto) -> Result<TensorProto, Diagnostic> {
    let Some(given) = node.attribute.first() else { return refuse("it has no value") };
    let floats = |dims, float_data| TensorProto { dims, data_type: 1, float_data, ..TensorProto::default() };
    let wholes = |dims, int64_data| TensorProto { dims, data_type: 7, int64_data, ..TensorProto::default() };
    match (given.name.as_str(), &given.t, &given.sparse_tensor) {
        ("value", Some(tensor), _) => Ok(tensor.clone()),
        ("sparse_value", _, Some(sparse)) => Ok(sparse.clone().whole()),
        ("value_float", ..) => Ok(floats(Vec::new(), vec![given.f])),
        ("value_floats", ..) => Ok(floats(vec![given.floats.len() as i64], given.floats.clone())),
        ("value_int", ..) => Ok(wholes(Vec::new(), vec![given.i])),
        ("value_ints", ..) => Ok(wholes(vec![given.ints.len() as i64], given.ints.clone())),
        (other, ..) => refuse(format!("attribute `{other}` is not supported")),
    }
}

/// Returns the tensor of a `ConstantOfShape`: a single number repeated, zero in fp32 unless attribute `value` gives a
/// different one.
pub(super) fn filled(node: &NodeProto, dims: Vec<i64>) -> TensorProto {
    let given = node.attribute.iter().find(|a| a.name == "value").and_then(|a| a.t.as_ref());
    let data_type = given.map_or(1, |tensor| tensor.data_type);
    let count = dims.iter().try_fold(1_u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?));
    let few = count.filter(|n| *n <= KNOWN_MOST).unwrap_or(0) as usize;
    let number = given.and_then(first_number);
    let int64_data = number.map_or(Vec::new(), |number| vec![number; few]);
    let int32_data = int64_data.iter().map(|number| *number as i32).collect();
    TensorProto { dims, data_type, int64_data, int32_data, ..TensorProto::default() }
}

/// Creates a filled tensor whose size comes from the model's input.
fn constant_of_shape(scope: &mut Scope, node: &NodeProto) -> Made {
    let tensor = filled(node, scope.known(node, 0)?);
    let dims = dims_of(&tensor.dims)?;
    let known = numbers(&tensor, dims.iter().product()).filter(|_| dims.len() == 1);
    if let Some(known) = known {
        return Ok(vec![list(known)]);
    }
    if dims.len() > RANK || dims.contains(&0) {
        return refuse(format!("a tensor of shape {dims:?} is not supported"));
    }
    Ok(vec![Value::of(scope.eager.fill(&dims, width_of(tensor.data_type)?))])
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
        return refuse(format!("shape {:?} cannot become {wanted:?}", x.dims));
    }
    Ok(vec![x.reshape(dims)])
}

fn flatten(scope: &mut Scope, node: &NodeProto) -> Made {
    let x = scope.input(node, 0)?;
    let at = integer(node, "axis", 1);
    let at = if at < 0 { at + x.dims.len() as i64 } else { at };
    let Some((rows, row)) = usize::try_from(at).ok().and_then(|at| x.dims.split_at_checked(at)) else {
        return refuse(format!("dimension {at} does not exist in a tensor of {} dimensions", x.dims.len()));
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
        return refuse(format!("dimensions {axes:?} of shape {:?} are not all 1", x.dims));
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

fn range(scope: &mut Scope, node: &NodeProto) -> Made {
    let values = [scope.input(node, 0)?, scope.input(node, 1)?, scope.input(node, 2)?];
    // Limits of floating-point ranges are whole numbers where sizes come from shapes.
    let number = |value: &Value| {
        let real = || value.reals.as_ref()?.first().filter(|x| x.fract() == 0.0).map(|x| *x as i64);
        value.known.as_ref().and_then(|all| all.first().copied()).or_else(real)
    };
    let numbers: Option<Vec<i64>> = values.iter().map(number).collect();
    let Some([from, to, step]) = numbers.as_deref().and_then(|all| <[i64; 3]>::try_from(all).ok()) else {
        return refuse("limits must be whole numbers, known before the model runs");
    };
    if step <= 0 || to.saturating_sub(from) / step > KNOWN_MOST as i64 {
        return refuse(format!("a range from {from} to {to} in steps of {step} is not supported"));
    }
    let all = list((from..to).step_by(step as usize).collect());
    let is_real = values.iter().any(|value| value.reals.is_some());
    Ok(vec![if is_real { Value { width: 4, known: None, ..all } } else { all }])
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
