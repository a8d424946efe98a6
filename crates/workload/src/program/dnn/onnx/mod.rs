//! Models from ONNX files: shapes are inferred, arithmetic on shapes is done, each node launches its kernels.

mod compute;
mod dimensions;
mod images;
mod moves;
mod proto;
mod scope;
mod shapes;
#[cfg(test)]
mod tests;
mod value;

use std::path::Path;

use config::{Diagnostic, Place};
use prost::Message;
use prost::bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::program::dnn::eager::Eager;
use crate::program::dnn::model::Model;
use crate::program::dnn::store::Store;
pub(crate) use dimensions::Dimensions;
use proto::{GraphProto, ModelProto, TensorProto};
use scope::Scope;
use value::{Value, dims_of, width_of};

/// A model from a file. One pass runs every node once.
#[derive(Debug)]
pub(crate) struct Onnx {
    graph: GraphProto,
    store: Store,
    /// Initializers and inputs.
    given: FxHashMap<String, Value>,
}

impl Onnx {
    /// Reads a file; dimensions that it leaves open are as long as `open` says.
    ///
    /// # Errors
    /// A file that cannot be read or is none of ONNX; an operator that is not supported, with its node; shapes that
    /// contradict those that the file has.
    pub(crate) fn open(path: &Path, open: &Dimensions) -> Result<Onnx, Diagnostic> {
        let name = path.display().to_string();
        let place = || Place { source: name.clone(), ..Place::default() };
        let bytes = std::fs::read(path)
            .map_err(|e| Diagnostic::new(format!("cannot read `{name}`: {e}")).at(place()))?;
        Onnx::read(bytes, open).map_err(|fault| {
            let key = fault.place.as_ref().map(|at| at.key.clone()).unwrap_or_default();
            fault.at(Place { key, ..place() })
        })
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn read(bytes: Vec<u8>, open: &Dimensions) -> Result<Onnx, Diagnostic> {
        let model = ModelProto::decode(Bytes::from(bytes))
            .map_err(|e| Diagnostic::new(format!("no ONNX file, or a truncated one: {e}")))?;
        let graph = model.graph.filter(|graph| model.ir_version > 0 && !graph.node.is_empty());
        let Some(graph) = graph else {
            let what = "no ONNX file: it has no graph with nodes, or no version";
            return Err(Diagnostic::new(what).help("a file that `onnx.save` wrote"));
        };
        let mut model = Onnx { graph, store: Store::default(), given: FxHashMap::default() };
        model.initializers()?;
        model.constants()?;
        open.check(&model.graph.input)?;
        model.inputs(open)?;
        let mut eager = Eager::new(&model.store);
        let scope = model.run(&mut eager)?;
        let declared = model.graph.output.iter().chain(&model.graph.value_info);
        dimensions::agree(declared, |name| scope.dims(name))?;
        Ok(model)
    }

    /// Parameters. Their values are dropped, but for short ones of shapes and factors.
    fn initializers(&mut self) -> Result<(), Diagnostic> {
        for tensor in std::mem::take(&mut self.graph.initializer) {
            let value = self.constant(&tensor).map_err(|fault| named(fault, &tensor.name))?;
            self.given.insert(tensor.name, value);
        }
        Ok(())
    }

    /// A constant of the file.
    fn constant(&mut self, tensor: &TensorProto) -> Result<Value, Diagnostic> {
        let (dims, width) = (dims_of(&tensor.dims)?, width_of(tensor.data_type)?);
        // Whole numbers are shapes and indices, no part of a model's size.
        let is_parameter = matches!(tensor.data_type, 1 | 10 | 16);
        let view = if is_parameter {
            self.store.parameter("initializer", &dims, width)
        } else {
            self.store.buffer("initializer", &dims, width)
        };
        Value::constant(tensor, Some(view))
    }

    /// Nodes that make the same tensor in every pass: constants, and tensors of dimensions that the file has as a constant,
    /// filled with one number, as files without the values of their parameters have them. Runtimes make them once.
    fn constants(&mut self) -> Result<(), Diagnostic> {
        for mut node in std::mem::take(&mut self.graph.node) {
            let made = match (node.op_type.as_str(), node.input.first(), shapes::filling(&node)) {
                ("Constant", None, Some(tensor)) => Some(self.constant(tensor)),
                ("ConstantOfShape", Some(input), filling) => {
                    let known = self.given.get(input).and_then(|value| value.known.clone());
                    let of_floats = filling.is_none_or(|tensor| tensor.data_type == 1);
                    known.filter(|_| of_floats).map(|dims| {
                        let dims = dims_of(&dims)?;
                        Ok(Value::of(self.store.parameter("initializer", &dims, 4)))
                    })
                }
                _ => None,
            };
            let Some(value) = made else {
                self.graph.node.push(node);
                continue;
            };
            let output = node.output.pop().unwrap_or_default();
            self.given.insert(output.clone(), value.map_err(|fault| named(fault, &output))?);
        }
        Ok(())
    }

    /// Inputs that are no initializers.
    fn inputs(&mut self, open: &Dimensions) -> Result<(), Diagnostic> {
        for input in &self.graph.input {
            if self.given.contains_key(&input.name) {
                continue;
            }
            let (dims, width) = open.shape(input)?;
            let view = self.store.buffer("input", &dims, width);
            self.given.insert(input.name.clone(), Value::of(view));
        }
        Ok(())
    }

    /// Every node in order; the file has them in an order in which they can be run.
    fn run<'a>(&'a self, eager: &'a mut Eager) -> Result<Scope<'a>, Diagnostic> {
        let mut scope = Scope::new(eager, &self.given);
        self.graph.node.iter().try_for_each(|node| scope.node(node))?;
        Ok(scope)
    }
}

/// A fault of a tensor, with its name.
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
