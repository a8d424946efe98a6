//! Operators that name elements anew, or work on shapes.

use super::compute::{Made, refuse, together};
use super::proto::{NodeProto, TensorProto};
use super::quantised::unpacked;
use super::scope::{Operator, Scope, from_front};
use super::value::{KNOWN_MOST, Value, dims_of, first_number, integer, numbers, width_of};
use crate::program::dnn::eager::work;
use crate::program::dnn::kernels::RANK;
use config::Diagnostic;

/// Operators by name.
pub(super) const OPERATORS: &[(&str, Operator)] = &[
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

/// A shape as known numbers.
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

/// The tensor of a `Constant`.
///
/// # Errors
/// Texts, and attributes that the operator does not have.
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

/// The tensor that a `ConstantOfShape` makes: one number everywhere, a zero of fp32 unless attribute `value` says another one.
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

/// A filled tensor whose size comes from the model's input.
fn constant_of_shape(scope: &mut Scope, node: &NodeProto) -> Made {
    let tensor = filled(node, scope.known(node, 0)?);
    let dims = dims_of(&tensor.dims)?;
    let known = numbers(&tensor, dims.iter().product()).filter(|_| dims.len() == 1);
    if let Some(known) = known {
        return Ok(vec![list(known)]);
    }
    if dims.len() > RANK || dims.contains(&0) {
        return refuse(format!("a tensor of {dims:?} elements"));
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

fn range(scope: &mut Scope, node: &NodeProto) -> Made {
    let values = [scope.input(node, 0)?, scope.input(node, 1)?, scope.input(node, 2)?];
    // Limits of floating-point ranges are whole numbers where sizes come from shapes.
    let number = |value: &Value| {
        let real = || value.reals.as_ref()?.first().filter(|x| x.fract() == 0.0).map(|x| *x as i64);
        value.known.as_ref().and_then(|all| all.first().copied()).or_else(real)
    };
    let numbers: Option<Vec<i64>> = values.iter().map(number).collect();
    let Some([from, to, step]) = numbers.as_deref().and_then(|all| <[i64; 3]>::try_from(all).ok()) else {
        return refuse("limits that are not known before the model runs, or no whole numbers");
    };
    if step <= 0 || to.saturating_sub(from) / step > KNOWN_MOST as i64 {
        return refuse(format!("from {from} to {to} in steps of {step}"));
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
