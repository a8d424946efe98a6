//! Running nodes: values by name, operators by name, diagnostics that name the node.

use config::{Diagnostic, Place};
use rustc_hash::FxHashMap;

use super::proto::NodeProto;
use super::value::{Value, axis, integers};
use super::{compute, images, moves, quantised, shapes};
use crate::program::dnn::eager::Eager;
use crate::program::dnn::view::View;

/// What an operator does with a node; the values of its outputs.
pub(super) type Operator = fn(&mut Scope, &NodeProto) -> Result<Vec<Value>, Diagnostic>;

/// The graph while it is run.
pub(crate) struct Scope<'a> {
    pub(super) eager: &'a mut Eager,
    given: &'a FxHashMap<String, Value>,
    made: FxHashMap<String, Value>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(eager: &'a mut Eager, given: &'a FxHashMap<String, Value>) -> Scope<'a> {
        Scope { eager, given, made: FxHashMap::default() }
    }

    /// Runs a node.
    ///
    /// # Errors
    /// An operator that is not supported, or one that cannot be run on these inputs.
    pub(super) fn node(&mut self, node: &NodeProto) -> Result<(), Diagnostic> {
        let named = if node.name.is_empty() { node.output.first() } else { Some(&node.name) };
        let name = named.cloned().unwrap_or_default();
        let place = || Place { key: name.clone(), ..Place::default() };
        let all = || {
            let lists = [compute::OPERATORS, images::OPERATORS, moves::OPERATORS, quantised::OPERATORS];
            lists.into_iter().chain([shapes::OPERATORS]).flatten()
        };
        let Some((_, run)) = all().find(|(op, _)| *op == node.op_type) else {
            let what = format!("operator `{}` of node `{name}` is not supported", node.op_type);
            return Err(Diagnostic::new(what).allowed(&node.op_type, all().map(|(op, _)| *op)).at(place()));
        };
        let values = run(self, node).map_err(|fault| {
            let what = format!("operator `{}` of node `{name}`: {}", node.op_type, fault.what);
            Diagnostic { what, ..fault }.at(place())
        })?;
        for (output, value) in node.output.iter().zip(values) {
            self.made.insert(output.clone(), value);
        }
        Ok(())
    }

    /// A value that a node has made.
    pub(super) fn made(&self, name: &str) -> Option<&Value> {
        self.made.get(name)
    }

    /// Dimensions of a value, if anything has made it.
    pub(super) fn dims(&self, name: &str) -> Option<&[u64]> {
        self.made.get(name).map(|value| value.dims.as_slice())
    }

    /// An input that may be left out.
    pub(super) fn maybe(&self, node: &NodeProto, n: usize) -> Result<Option<Value>, Diagnostic> {
        let Some(name) = node.input.get(n).filter(|name| !name.is_empty()) else { return Ok(None) };
        let found = self.made.get(name).or_else(|| self.given.get(name)).cloned();
        found.map(Some).ok_or_else(|| Diagnostic::new(format!("nothing makes its input `{name}`")))
    }

    /// An input.
    pub(super) fn input(&self, node: &NodeProto, n: usize) -> Result<Value, Diagnostic> {
        self.maybe(node, n)?.ok_or_else(|| Diagnostic::new(format!("input {n} is missing")))
    }

    /// An input's tensor.
    pub(super) fn view(&mut self, node: &NodeProto, n: usize) -> Result<View, Diagnostic> {
        let value = self.input(node, n)?;
        self.tensor(&value)
    }

    /// A value's tensor. Known numbers that no file holds are written by the host.
    pub(super) fn tensor(&mut self, value: &Value) -> Result<View, Diagnostic> {
        if value.count() == 0 {
            return Err(Diagnostic::new(format!("a tensor of {:?} elements is empty", value.dims)));
        }
        if value.packed.is_some() {
            return Err(Diagnostic::new(
                "its input has several elements in a byte: only `DequantizeLinear` and `Cast` read them",
            ));
        }
        Ok(value.view.clone().unwrap_or_else(|| self.eager.empty(&value.dims, value.width)))
    }

    /// An input that must be known when the file is read.
    pub(super) fn known(&self, node: &NodeProto, n: usize) -> Result<Vec<i64>, Diagnostic> {
        let value = self.input(node, n)?;
        value.known.ok_or_else(|| {
            Diagnostic::new(format!("its input `{}` is not known before the model runs", node.input[n]))
        })
    }

    /// Dimensions from an attribute, or from an input, as newer versions of operators have them.
    pub(super) fn axes(&self, node: &NodeProto, n: usize) -> Result<Option<Vec<i64>>, Diagnostic> {
        if let Some(axes) = integers(node, "axes") {
            return Ok(Some(axes.to_vec()));
        }
        if self.maybe(node, n)?.is_some() { self.known(node, n).map(Some) } else { Ok(None) }
    }
}

/// Dimensions counted from the front.
pub(super) fn from_front(axes: &[i64], rank: usize) -> Result<Vec<usize>, Diagnostic> {
    let mut all: Vec<usize> = axes.iter().map(|n| axis(*n, rank)).collect::<Result<_, _>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
