//! Tensors whose elements are in files beside the model (ONNX, "External Data").

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};

use config::Diagnostic;

use super::proto::{GraphProto, TensorProto};
use super::value::{KNOWN_MOST, width_of};

/// Brings in what is short enough to be a shape; of longer tensors no elements are needed.
///
/// # Errors
/// A file that is outside the model's folder, or cannot be read.
pub(super) fn bring_in(graph: &mut GraphProto, folder: &Path) -> Result<(), Diagnostic> {
    let of_nodes = graph.node.iter_mut().flat_map(|node| &mut node.attribute).filter_map(|a| a.t.as_mut());
    for tensor in graph.initializer.iter_mut().chain(of_nodes) {
        let count = tensor.dims.iter().try_fold(1_u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?));
        let is_short = count.is_some_and(|count| count <= KNOWN_MOST);
        if tensor.external_data.is_empty() || !is_short || !matches!(tensor.data_type, 1 | 6 | 7) {
            continue;
        }
        let bytes = count.unwrap_or(0) * u64::from(width_of(tensor.data_type)?);
        tensor.raw_data = read(tensor, bytes, folder)?.into();
    }
    Ok(())
}

fn read(tensor: &TensorProto, bytes: u64, folder: &Path) -> Result<Vec<u8>, Diagnostic> {
    let of = |key: &str| tensor.external_data.iter().find(|entry| entry.key == key).map(|e| e.value.as_str());
    let location = of("location").unwrap_or_default();
    let is_inside = Path::new(location).components().all(|part| matches!(part, Component::Normal(_)));
    if location.is_empty() || !is_inside {
        let what = format!("the elements of `{}` are in `{location}`", tensor.name);
        return Err(Diagnostic::new(what).help("elements may be in files in the model's folder"));
    }
    let offset = of("offset").map_or(Ok(0), str::parse);
    let offset =
        offset.map_err(|_| Diagnostic::new(format!("the offset of `{}` is not a number", tensor.name)))?;
    let mut found = vec![0; bytes as usize];
    File::open(folder.join(location))
        .and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut found)
        })
        .map_err(|fault| {
            let what = format!("the elements of `{}` are in `{location}`: {fault}", tensor.name);
            Diagnostic::new(what).help("put the file beside the model; only shapes are read from it")
        })?;
    Ok(found)
}
