//! Operators on quantised numbers, and elements of which a byte has several.

use super::compute::{Made, one, refuse};
use super::proto::NodeProto;
use super::scope::{Operator, Scope};
use super::value::{Value, axis, integer, width_of};
use crate::program::dnn::eager::work;
use crate::program::dnn::kernels::RANK;
use crate::program::dnn::view::View;

/// Operators by name.
pub(super) const OPERATORS: &[(&str, Operator)] =
    &[("DequantizeLinear", dequantize), ("QuantizeLinear", quantize)];

/// Elements under dimensions in which each factor's are a full dimension or one.
struct Layout {
    dims: Vec<u64>,
    /// Those of the factors.
    factors: Vec<u64>,
}

impl Layout {
    /// One factor for the tensor, for each element of a dimension, or for each block of one (ONNX, `DequantizeLinear`).
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
            return refuse(format!("factors of {scale:?} elements for {x:?}"));
        }
        let dims = vec![outer, blocks, length / blocks, inner];
        Ok(Layout { dims, factors: vec![outer, blocks, 1, inner] })
    }

    /// The last dimension as groups of the elements of a byte; none if a byte has elements of two rows.
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

/// The elements of a packed tensor, one in `width` bytes.
pub(super) fn unpacked(scope: &mut Scope, x: &Value, width: u8) -> Made {
    let Some(bytes) = x.packed.as_ref().filter(|bytes| bytes.count() > 0) else {
        return refuse(format!("a tensor of {:?} elements is empty", x.dims));
    };
    let of_byte = x.count().div_ceil(bytes.count());
    // The last byte may have fewer elements: the result has room for all.
    let whole = scope.eager.empty(&[bytes.count(), of_byte], width);
    scope.eager.map_into("cast", &[&bytes.reshape(&[bytes.count(), 1])], &whole, work::ONE);
    one(View::of(whole.tensor, &x.dims, width))
}

/// A kernel of every pass: weights stay as small as the file has them, as ONNX Runtime's constant folding leaves this operator out.
fn dequantize(scope: &mut Scope, node: &NodeProto) -> Made {
    let (x, scale, zero) = (scope.input(node, 0)?, scope.view(node, 1)?, scope.maybe(node, 2)?);
    if x.count() == 0 {
        return refuse(format!("a tensor of {:?} elements is empty", x.dims));
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
                    "a byte has elements of two rows of {:?}, each with a factor of its own",
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

/// To the type of the zero point, one byte without one.
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
