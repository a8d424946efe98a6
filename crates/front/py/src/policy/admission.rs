//! Which missing pages a DRAM cache keeps.

use super::Function;
use mem::dram_cache::admit::Admission;

impl Admission for Function {
    fn admits(&mut self, page: u64) -> bool {
        self.ask(|py, function| function.call1(py, (page,))?.extract::<bool>(py)).unwrap_or(true)
    }
}
