//! Models from ONNX files: shapes are inferred, arithmetic on shapes is done, each node launches its kernels.

mod compute;
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
use proto::{GraphProto, ModelProto, ValueInfoProto};
use scope::Scope;
use value::{Value, dims_of, numbers, width_of};

/// A model from a file. One pass runs every node once.
#[derive(Debug)]
pub(crate) struct Onnx {
    graph: GraphProto,
    store: Store,
    /// Initializers and inputs.
    given: FxHashMap<String, Value>,
}

impl Onnx {
    /// Reads a file; dimensions that it leaves open are `open` long.
    ///
    /// # Errors
    /// A file that cannot be read or is none of ONNX; an operator that is not supported, with its node.
    pub(crate) fn open(path: &Path, open: u64) -> Result<Onnx, Diagnostic> {
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
    pub(crate) fn read(bytes: Vec<u8>, open: u64) -> Result<Onnx, Diagnostic> {
        let model = ModelProto::decode(Bytes::from(bytes))
            .map_err(|e| Diagnostic::new(format!("no ONNX file, or a truncated one: {e}")))?;
        let graph = model.graph.filter(|graph| model.ir_version > 0 && !graph.node.is_empty());
        let Some(graph) = graph else {
            let what = "no ONNX file: it has no graph with nodes, or no version";
            return Err(Diagnostic::new(what).help("a file that `onnx.save` wrote"));
        };
        let mut model = Onnx { graph, store: Store::default(), given: FxHashMap::default() };
        model.initializers()?;
        model.inputs(open)?;
        let mut eager = Eager::new(&model.store);
        model.run(&mut eager)?;
        Ok(model)
    }

    /// Parameters. Their values are dropped, but for short whole numbers.
    fn initializers(&mut self) -> Result<(), Diagnostic> {
        for tensor in &mut self.graph.initializer {
            let named = |fault: Diagnostic| fault.at(Place { key: tensor.name.clone(), ..Place::default() });
            let dims = dims_of(&tensor.dims).map_err(named)?;
            let width = width_of(tensor.data_type).map_err(named)?;
            let known = numbers(tensor, dims.iter().product());
            // Whole numbers are shapes and indices, no part of a model's size.
            let is_parameter = matches!(tensor.data_type, 1 | 10 | 16);
            let view = if is_parameter {
                self.store.parameter("initializer", &dims, width)
            } else {
                self.store.buffer("initializer", &dims, width)
            };
            tensor.raw_data = Bytes::new();
            self.given.insert(tensor.name.clone(), Value { known, ..Value::of(view) });
        }
        Ok(())
    }

    /// Inputs that are no initializers.
    fn inputs(&mut self, open: u64) -> Result<(), Diagnostic> {
        for input in &self.graph.input {
            if self.given.contains_key(&input.name) {
                continue;
            }
            let (dims, width) = shape(input, open)?;
            let view = self.store.buffer("input", &dims, width);
            self.given.insert(input.name.clone(), Value::of(view));
        }
        Ok(())
    }

    /// Every node in order; the file has them in an order in which they can be run.
    fn run(&self, eager: &mut Eager) -> Result<(), Diagnostic> {
        let mut scope = Scope::new(eager, &self.given);
        self.graph.node.iter().try_for_each(|node| scope.node(node))
    }
}

fn shape(input: &ValueInfoProto, open: u64) -> Result<(Vec<u64>, u8), Diagnostic> {
    let place = || Place { key: input.name.clone(), ..Place::default() };
    let tensor = input.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let Some(tensor) = tensor else {
        return Err(Diagnostic::new(format!("input `{}` is no tensor", input.name)).at(place()));
    };
    let dims = tensor.shape.iter().flat_map(|shape| &shape.dim);
    let dims: Vec<i64> = dims.map(|d| d.dim_value.filter(|n| *n > 0).unwrap_or(open as i64)).collect();
    let width = width_of(tensor.elem_type).map_err(|fault| fault.at(place()))?;
    Ok((dims_of(&dims).map_err(|fault| fault.at(place()))?, width))
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
