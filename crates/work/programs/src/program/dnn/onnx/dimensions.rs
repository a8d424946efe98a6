//! Dimensions that a file leaves open, and those that it states.

use config::{Diagnostic, Place};

use super::proto::{Dimension, ValueInfoProto};
use super::value::{dims_of, width_of};

/// How long open dimensions are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dimensions {
    /// By the names that the file gives them.
    pub(crate) named: Vec<(String, u64)>,
    /// All others.
    pub(crate) other: u64,
}

/// A tensor's dimensions as the file has them; none if it is something else.
fn stated(of: &ValueInfoProto) -> Option<(&[Dimension], i32)> {
    let tensor = of.r#type.as_ref()?.tensor_type.as_ref()?;
    Some((tensor.shape.as_ref().map_or(&[], |shape| shape.dim.as_slice()), tensor.elem_type))
}

/// A dimension that is a number.
fn fixed(dimension: &Dimension) -> Option<i64> {
    dimension.dim_value.filter(|n| *n > 0)
}

impl Dimensions {
    /// Refuses names that no input has.
    pub(super) fn check(&self, inputs: &[ValueInfoProto]) -> Result<(), Diagnostic> {
        let all = || inputs.iter().filter_map(stated).flat_map(|(dims, _)| dims);
        let open = || all().filter(|d| fixed(d).is_none()).filter_map(|d| d.dim_param.as_deref());
        match self.named.iter().find(|(name, _)| !open().any(|known| known == name)) {
            None => Ok(()),
            Some((name, _)) => {
                let mut names: Vec<&str> = open().collect();
                names.sort_unstable();
                names.dedup();
                let refused =
                    Diagnostic::new(format!("no input of the model has an open dimension `{name}`"));
                Err(if names.is_empty() {
                    refused.help("its open dimensions have no names: `dimension=` is the length of all")
                } else {
                    refused.allowed(name, names)
                })
            }
        }
    }

    /// Which options set the dimensions that the inputs leave open, with their present lengths; none if they leave none open.
    pub(super) fn options(&self, inputs: &[&ValueInfoProto]) -> Option<String> {
        let all = inputs.iter().filter_map(|input| stated(input)).flat_map(|(dims, _)| dims);
        let mut open: Vec<(Option<&str>, i64)> = all
            .filter(|dimension| fixed(dimension).is_none())
            .map(|d| (d.dim_param.as_deref().filter(|name| !name.is_empty()), self.length(d)))
            .collect();
        open.sort_unstable();
        open.dedup();
        let names: Vec<&str> = open.iter().filter_map(|(name, _)| *name).collect();
        let lengths: Vec<String> = open
            .iter()
            .map(|(name, length)| {
                format!("{} = {length}", name.map_or("without a name".to_owned(), |name| format!("`{name}`")))
            })
            .collect();
        if lengths.is_empty() {
            return None;
        }
        let each: Vec<String> = names.iter().map(|name| format!("{name}:LENGTH")).collect();
        let by_name = if each.is_empty() {
            String::new()
        } else {
            format!("`dimensions={}` sets them by name, ", each.join("/"))
        };
        Some(format!(
            "the file leaves dimensions open ({}): {by_name}`dimension=LENGTH` sets all others",
            lengths.join(", ")
        ))
    }

    fn length(&self, dimension: &Dimension) -> i64 {
        let named = || self.named.iter().find(|(name, _)| Some(name) == dimension.dim_param.as_ref());
        fixed(dimension).unwrap_or_else(|| named().map_or(self.other, |(_, length)| *length) as i64)
    }

    /// Dimensions of an input, and bytes of an element.
    pub(super) fn shape(&self, input: &ValueInfoProto) -> Result<(Vec<u64>, u8), Diagnostic> {
        let place = || Place { key: input.name.clone(), ..Place::default() };
        let Some((dims, elements)) = stated(input) else {
            return Err(Diagnostic::new(format!("input `{}` is no tensor", input.name)).at(place()));
        };
        let dims: Vec<i64> = dims.iter().map(|dimension| self.length(dimension)).collect();
        let width = width_of(elements).map_err(|fault| fault.at(place()))?;
        Ok((dims_of(&dims).map_err(|fault| fault.at(place()))?, width))
    }
}

/// Holds the shapes that came out against those that the file states, where these are numbers.
///
/// # Errors
/// The first that differs.
pub(super) fn agree<'a>(
    declared: impl Iterator<Item = &'a ValueInfoProto>,
    made: impl Fn(&str) -> Option<&'a [u64]>,
) -> Result<(), Diagnostic> {
    for value in declared {
        let (Some((dims, _)), Some(made)) = (stated(value), made(&value.name)) else { continue };
        let same = |(stated, made): (&Dimension, &u64)| fixed(stated).is_none_or(|n| n as u64 == *made);
        if !dims.is_empty() && (dims.len() != made.len() || !dims.iter().zip(made).all(same)) {
            let stated: Vec<String> =
                dims.iter().map(|d| fixed(d).map_or("?".to_owned(), |n| n.to_string())).collect();
            let name = &value.name;
            let what = format!("`{name}` has {made:?} elements, and [{}] in the file", stated.join(", "));
            let place = Place { key: name.clone(), ..Place::default() };
            return Err(Diagnostic::new(what).at(place));
        }
    }
    Ok(())
}
