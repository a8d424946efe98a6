//! Models from ONNX files: shapes are inferred, arithmetic on shapes is executed, and each node launches its kernels.
//! A node finds its values and its operator by name.

mod compute;
mod images;
mod moves;
mod proto;
#[cfg(test)]
mod tests;
mod value;

use std::path::Path;

use config::{Diagnostic, Place};
use prost::Message;
use prost::bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::program::dnn::eager::Eager;
use crate::program::dnn::memory::{Store, View};
use crate::program::dnn::model::Model;
pub(crate) use proto::is_onnx;
use proto::{GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto};
pub(crate) use value::Dimensions;
use value::{Value, axis, integers};

/// A model from a file. One pass runs every node once.
#[derive(Debug)]
pub(crate) struct Onnx {
    graph: GraphProto,
    store: Store,
    /// Initializers and inputs.
    given: FxHashMap<String, Value>,
}

impl Onnx {
    /// Reads a file; the dimensions that it leaves open have the lengths in `open`.
    ///
    /// # Errors
    /// If a file cannot be read or is not an ONNX file, an operator (named with its node) is not supported, or shapes
    /// contradict those in the file.
    pub(crate) fn open(path: &Path, open: &Dimensions) -> Result<Onnx, Diagnostic> {
        let name = path.display().to_string();
        let place = || Place { source: name.clone(), ..Place::default() };
        let bytes = std::fs::read(path)
            .map_err(|e| Diagnostic::new(format!("cannot read `{name}`: {e}")).at(place()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let built = decode(bytes).and_then(|mut graph| {
            value::bring_in_external(&mut graph, folder)?;
            Onnx::build(graph, open)
        });
        built.map_err(|fault| {
            let key = fault.place.as_ref().map(|at| at.key.clone()).unwrap_or_default();
            fault.at(Place { key, ..place() })
        })
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// As `open`.
    #[cfg(test)]
    pub(crate) fn read(bytes: Vec<u8>, open: &Dimensions) -> Result<Onnx, Diagnostic> {
        Onnx::build(decode(bytes)?, open)
    }

    fn build(graph: GraphProto, open: &Dimensions) -> Result<Onnx, Diagnostic> {
        let mut model = Onnx { graph, store: Store::default(), given: FxHashMap::default() };
        let fixed = model.constants()?;
        open.check(&model.graph.input)?;
        model.inputs(open, &fixed)?;
        if let Err(fault) = model.checked() {
            let inputs = model.graph.input.iter().filter(|input| !fixed.contains(&input.name));
            let options = open.options(&inputs.collect::<Vec<_>>());
            // A wrong shape may result from the length of an open dimension.
            let of_shapes = fault.help.is_none() && fault.allowed.is_empty();
            return Err(match options.filter(|_| of_shapes) {
                Some(options) => fault.help(options),
                None => fault,
            });
        }
        Ok(model)
    }

    /// Runs every node and compares the shapes with those stated in the file.
    fn checked(&self) -> Result<(), Diagnostic> {
        let mut eager = Eager::new(&self.store);
        let scope = self.run(&mut eager)?;
        let declared = self.graph.output.iter().chain(&self.graph.value_info);
        value::agree(declared, |name| scope.dims(name))
    }

    /// Places constants in memory: initializers, `Constant` nodes, and results of nodes that depend only on these,
    /// which runtimes compute once. The nodes are removed, and so are parameters that only they read. Returns the
    /// names of all constants.
    fn constants(&mut self) -> Result<FxHashSet<String>, Diagnostic> {
        let sparse =
            std::mem::take(&mut self.graph.sparse_initializer).into_iter().map(SparseTensorProto::whole);
        let mut tensors: Vec<TensorProto> =
            std::mem::take(&mut self.graph.initializer).into_iter().chain(sparse).collect();
        let mut fixed: FxHashSet<String> = tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let mut once: Vec<NodeProto> = Vec::new();
        for mut node in std::mem::take(&mut self.graph.node) {
            let known = |name: &String| name.is_empty() || fixed.contains(name);
            if node.op_type == "Constant" {
                let name = node.output.pop().unwrap_or_default();
                let tensor = moves::constant_of(&node).map_err(|fault| named(fault, &name))?;
                fixed.insert(name.clone());
                tensors.push(TensorProto { name, ..tensor });
            } else if !node.input.is_empty()
                && node.input.iter().all(known)
                // Weights stay quantised in memory.
                && node.op_type != "DequantizeLinear"
            {
                fixed.extend(node.output.iter().cloned());
                once.push(node);
            } else {
                self.graph.node.push(node);
            }
        }
        let outputs = self.graph.output.iter().map(|output| &output.name);
        let used: FxHashSet<&String> =
            self.graph.node.iter().flat_map(|node| &node.input).chain(outputs).collect();
        let made = made_once(&tensors, &once, |name| used.contains(name))?;
        let read_once: FxHashSet<&String> = once.iter().flat_map(|node| &node.input).collect();
        for tensor in &tensors {
            let name = &tensor.name;
            if read_once.contains(name) && !used.contains(name) && value::is_parameter(tensor.data_type) {
                continue;
            }
            let value = Value::constant(tensor, &mut self.store).map_err(|fault| named(fault, name))?;
            self.given.insert(name.clone(), value);
        }
        for (name, value) in made {
            self.given.insert(name, value.lasting(&mut self.store));
        }
        Ok(fixed)
    }

    /// Adds the inputs other than constants.
    fn inputs(&mut self, open: &Dimensions, fixed: &FxHashSet<String>) -> Result<(), Diagnostic> {
        for input in &self.graph.input {
            if fixed.contains(&input.name) {
                continue;
            }
            let (dims, width) = open.shape(input)?;
            let view = self.store.buffer("input", &dims, width);
            self.given.insert(input.name.clone(), Value::of(view));
        }
        Ok(())
    }

    /// Runs every node in order; the file lists them in an executable order.
    fn run<'a>(&'a self, eager: &'a mut Eager) -> Result<Scope<'a>, Diagnostic> {
        let mut scope = Scope::new(eager, &self.given);
        self.graph.node.iter().try_for_each(|node| scope.node(node))?;
        Ok(scope)
    }
}

/// Decodes the graph of a file's bytes.
fn decode(bytes: Vec<u8>) -> Result<GraphProto, Diagnostic> {
    let model = ModelProto::decode(Bytes::from(bytes))
        .map_err(|e| Diagnostic::new(format!("not an ONNX file, or a truncated one: {e}")))?;
    let graph = model.graph.filter(|graph| model.ir_version > 0 && !graph.node.is_empty());
    graph.ok_or_else(|| {
        let what = "not an ONNX file: it has no graph with nodes, or no version";
        Diagnostic::new(what).help("give a file that `onnx.save` wrote")
    })
}

/// Returns the used results that nodes compute from constants.
fn made_once(
    tensors: &[TensorProto],
    nodes: &[NodeProto],
    is_used: impl Fn(&String) -> bool,
) -> Result<Vec<(String, Value)>, Diagnostic> {
    if nodes.is_empty() {
        return Ok(Vec::new());
    }
    let mut store = Store::default();
    let given = tensors.iter().map(|tensor| {
        let value = Value::constant(tensor, &mut store).map_err(|fault| named(fault, &tensor.name))?;
        Ok((tensor.name.clone(), value))
    });
    let given: FxHashMap<String, Value> = given.collect::<Result<_, Diagnostic>>()?;
    let mut eager = Eager::new(&store);
    let mut scope = Scope::new(&mut eager, &given);
    nodes.iter().try_for_each(|node| scope.node(node))?;
    let outputs = nodes.iter().flat_map(|node| &node.output).filter(|name| is_used(name));
    Ok(outputs.filter_map(|name| Some((name.clone(), scope.made(name)?.clone()))).collect())
}

/// Adds its name to a tensor's fault.
fn named(fault: Diagnostic, key: &str) -> Diagnostic {
    fault.at(Place { key: key.to_owned(), ..Place::default() })
}

impl Model for Onnx {
    fn store(&self) -> &Store {
        &self.store
    }

    fn passes(&self) -> u32 {
        1
    }

    fn record(&self, _: u32, eager: &mut Eager) {
        self.run(eager).expect("the file's nodes have been run when it was read");
    }
}

// Execution of nodes: values by name, operators by name, diagnostics that name the node.

/// Implementation of an operator for a node; returns the values of its outputs.
type Operator = fn(&mut Scope, &NodeProto) -> Result<Vec<Value>, Diagnostic>;

/// State of a graph's run.
pub(crate) struct Scope<'a> {
    eager: &'a mut Eager,
    given: &'a FxHashMap<String, Value>,
    made: FxHashMap<String, Value>,
}

impl<'a> Scope<'a> {
    fn new(eager: &'a mut Eager, given: &'a FxHashMap<String, Value>) -> Scope<'a> {
        Scope { eager, given, made: FxHashMap::default() }
    }

    /// Runs a node.
    ///
    /// # Errors
    /// If an operator is not supported, or cannot be run on these inputs.
    fn node(&mut self, node: &NodeProto) -> Result<(), Diagnostic> {
        let named = if node.name.is_empty() { node.output.first() } else { Some(&node.name) };
        let name = named.cloned().unwrap_or_default();
        let place = || Place { key: name.clone(), ..Place::default() };
        let all = || {
            let lists =
                [compute::OPERATORS, images::OPERATORS, moves::OPERATORS, compute::QUANTISED_OPERATORS];
            lists.into_iter().chain([moves::SHAPE_OPERATORS]).flatten()
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

    /// Returns a value that a node has produced.
    fn made(&self, name: &str) -> Option<&Value> {
        self.made.get(name)
    }

    /// Returns the dimensions of a value, if it has been produced.
    fn dims(&self, name: &str) -> Option<&[u64]> {
        self.made.get(name).map(|value| value.dims.as_slice())
    }

    /// Returns an optional input.
    fn maybe(&self, node: &NodeProto, n: usize) -> Result<Option<Value>, Diagnostic> {
        let Some(name) = node.input.get(n).filter(|name| !name.is_empty()) else { return Ok(None) };
        let found = self.made.get(name).or_else(|| self.given.get(name)).cloned();
        found.map(Some).ok_or_else(|| Diagnostic::new(format!("nothing produces its input `{name}`")))
    }

    /// Returns an input.
    fn input(&self, node: &NodeProto, n: usize) -> Result<Value, Diagnostic> {
        self.maybe(node, n)?.ok_or_else(|| Diagnostic::new(format!("input {n} is missing")))
    }

    /// Returns an input's tensor.
    fn view(&mut self, node: &NodeProto, n: usize) -> Result<View, Diagnostic> {
        let value = self.input(node, n)?;
        self.tensor(&value)
    }

    /// Returns a value's tensor. Known numbers that are not in the file are written by the host.
    fn tensor(&mut self, value: &Value) -> Result<View, Diagnostic> {
        if value.count() == 0 {
            return Err(Diagnostic::new(format!("a tensor of shape {:?} is empty", value.dims)));
        }
        if value.packed.is_some() {
            return Err(Diagnostic::new(
                "its input has several elements in a byte: only `DequantizeLinear` and `Cast` read them",
            ));
        }
        Ok(value.view.clone().unwrap_or_else(|| self.eager.empty(&value.dims, value.width)))
    }

    /// Returns an input that must be known when the file is read.
    fn known(&self, node: &NodeProto, n: usize) -> Result<Vec<i64>, Diagnostic> {
        let value = self.input(node, n)?;
        value.known.ok_or_else(|| {
            Diagnostic::new(format!("its input `{}` is not known before the model runs", node.input[n]))
        })
    }

    /// Returns dimensions from an attribute, or from an input, as in newer versions of operators.
    fn axes(&self, node: &NodeProto, n: usize) -> Result<Option<Vec<i64>>, Diagnostic> {
        if let Some(axes) = integers(node, "axes") {
            return Ok(Some(axes.to_vec()));
        }
        if self.maybe(node, n)?.is_some() { self.known(node, n).map(Some) } else { Ok(None) }
    }
}

/// Converts dimensions to be counted from the front.
fn from_front(axes: &[i64], rank: usize) -> Result<Vec<usize>, Diagnostic> {
    let mut all: Vec<usize> = axes.iter().map(|n| axis(*n, rank)).collect::<Result<_, _>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
