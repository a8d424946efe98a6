//! Whether a file is a model, told by its first bytes.

/// Fields of `ModelProto` that have a length: names, texts, operator sets, metadata, functions; the graph is the seventh.
const WITH_LENGTH: [u64; 9] = [2, 3, 4, 6, 8, 14, 20, 25, 26];
const GRAPH: u64 = 7;

/// Whether bytes are the beginning of an ONNX model: its version, then known fields up to a graph that begins with a node, a name or a tensor.
pub(crate) fn is_onnx(start: &[u8]) -> bool {
    walk(start).unwrap_or(false)
}

fn walk(start: &[u8]) -> Option<bool> {
    // Field 1, `ir_version`: files have versions of one byte.
    let mut rest = start.strip_prefix(&[0x08])?;
    let version = take(&mut rest)?;
    if !(1..=64).contains(&version) {
        return None;
    }
    loop {
        let tag = take(&mut rest)?;
        let (field, kind) = (tag >> 3, tag & 7);
        match (field, kind) {
            // `model_version`.
            (5, 0) => drop(take(&mut rest)?),
            (GRAPH, 2) => {
                let length = take(&mut rest)?;
                // A node, the name, a tensor, a text, an input.
                return Some(length > 0 && matches!(rest.first()?, 0x0a | 0x12 | 0x2a | 0x52 | 0x5a));
            }
            (field, 2) if WITH_LENGTH.contains(&field) => {
                let length = usize::try_from(take(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
            }
            _ => return None,
        }
    }
}

/// The next number of seven bits a byte.
fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
