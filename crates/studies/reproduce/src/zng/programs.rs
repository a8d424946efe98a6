//! Table II: what each program is, counted without a machine as `nandscape explain` counts it.

use crate::expected::Figure;
use crate::study::Entry;
use config::Diagnostic;
use programs::program::{self, census};

/// A figure's entry; none if it is not of Table II.
pub(super) fn entry(figure: &Figure) -> Option<Entry> {
    let (program, column) = figure.id.strip_prefix("zng.table2.")?.split_once('.')?;
    let (program, kernels) = (program.to_owned(), column == "kernels");
    let (id, figure) = (figure.id.clone(), figure.clone());
    let compute = move |_: &_| {
        let mut programs = program::open(&[&program])?;
        let [one] = &mut programs[..] else {
            return Err(Diagnostic::new(format!("`{program}` is no single program")));
        };
        let census = census(one.as_mut());
        let value = if kernels { census.kernels.len() as f64 } else { census.read_ratio() };
        figure.row(value, format!("counted without a machine, as `explain {program}` does"))
    };
    Some(Entry::new(id, Vec::new(), compute))
}
