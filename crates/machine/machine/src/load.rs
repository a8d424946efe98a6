//! From a name to a spec whose links mean something and whose parts can be built.

use crate::spec::{Loaded, Spec};
use crate::{build, validate};
use config::{Diagnostic, Layers, Resolved};

impl Loaded {
    /// Reads a shipped system or a file, with overrides (`key.path=value`).
    ///
    /// # Errors
    /// Everything that is wrong with it, with places.
    pub fn load(name: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
        Loaded::with(name, Layers::load(name, &crate::systems::Shipped)?, overrides)
    }

    /// As [`Loaded::load`], of a text that is in memory; it may inherit shipped systems.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    pub fn from_text(name: &str, text: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
        Loaded::with(name, Layers::from_text(name, text, &crate::systems::Shipped)?, overrides)
    }

    fn with(name: &str, mut resolved: Resolved, overrides: &[String]) -> Result<Loaded, Diagnostic> {
        for assignment in overrides {
            resolved.set(assignment)?;
        }
        let spec = Spec::parse(&mut resolved).map_err(|fault| remedied(&resolved, fault))?;
        Loaded::of(name, spec, resolved.clone()).map_err(|fault| {
            let check = |mut resolved: Resolved| {
                let spec = Spec::parse(&mut resolved).ok()?;
                Some(Loaded::of(name, spec, resolved))
            };
            resolved.blame(fault, check)
        })
    }

    /// Finds what links mean, and refuses what a parser cannot: limits, parts that do not go together or cannot be built.
    fn of(name: &str, spec: Spec, resolved: Resolved) -> Result<Loaded, Diagnostic> {
        let mut loaded = Loaded { name: name.to_owned(), spec, resolved };
        validate::limits(&loaded)?;
        loaded.link()?;
        validate::parts(&loaded)?;
        build::gpu::check(&loaded)?;
        build::server::check(&loaded)?;
        build::accelerator::check(&loaded)?;
        build::coprocessor::check(&loaded)?;
        // Building geometry and thresholds checks what a parser cannot.
        for number in 0..loaded.spec.flash.len() {
            loaded.device_at(number, 0)?;
        }
        for number in 0..loaded.spec.stripe.len() {
            loaded.stripe_at(number)?;
        }
        Ok(loaded)
    }
}

/// A list of missing keys, with the way to have them all.
fn remedied(resolved: &Resolved, mut fault: Diagnostic) -> Diagnostic {
    let remedy = validate::remedy(resolved);
    for one in std::iter::once(&mut fault.help).chain(fault.also.iter_mut().map(|also| &mut also.help)) {
        if one.as_ref().is_some_and(|help| help.starts_with("set ")) {
            *one = Some(remedy.clone());
        }
    }
    fault
}
