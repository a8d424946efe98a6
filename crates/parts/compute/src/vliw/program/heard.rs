//! What a program does that is executed on its data, heard once in a process: runs of a study have the same data on the same cores.

use crate::vliw::GROUP;
use crate::vliw::recorded::Recorded;
use crate::vliw::spec::CoreSpec;
use config::SpecError;
use engine::Known;
use nest::executed::Executed;
use std::sync::Arc;

/// What it depends on: a program is the same only if it is one in memory, so that data are not compared.
struct Of {
    program: Arc<dyn Executed>,
    core: CoreSpec,
}

impl PartialEq for Of {
    fn eq(&self, other: &Of) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.program), Arc::as_ptr(&other.program)) && self.core == other.core
    }
}

/// Those of a study. Their data stay as long as they do.
static HEARD: Known<Of, Arc<Recorded>> = Known::new(4);

/// A program as it is heard on a core.
///
/// # Errors
/// A cache that cannot be built.
pub(super) fn heard(program: &Arc<dyn Executed>, core: &CoreSpec) -> Result<Arc<Recorded>, SpecError> {
    let of = Of { program: Arc::clone(program), core: core.clone() };
    HEARD.ask(of, |of| Recorded::of(&*of.program, &of.core, GROUP).map(Arc::new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vliw::testing;
    use nest::executed::Wc;

    /// What is heard again is the same object; the same words elsewhere in memory, and another core, are heard by themselves.
    #[test]
    fn a_program_in_memory_is_heard_once_on_a_core() {
        let words = || -> Arc<dyn Executed> { Arc::new(Wc::new(b"to be or not to be".to_vec())) };
        let (one, same) = (words(), words());
        let core = testing::core();
        let first = heard(&one, &core).expect("caches");
        assert!(Arc::ptr_eq(&first, &heard(&one, &core).expect("caches")));
        assert!(!Arc::ptr_eq(&first, &heard(&same, &core).expect("caches")));
        let mut other = core.clone();
        other.write_back += 1;
        assert!(!Arc::ptr_eq(&first, &heard(&one, &other).expect("caches")));
    }
}
