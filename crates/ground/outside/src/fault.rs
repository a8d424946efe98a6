//! Faults of a command: of its input, or of the delivery of its result.

use config::Diagnostic;
use std::fmt;

/// Why a command has not done what it was asked for.
#[derive(Debug)]
pub enum Fault {
    /// The input cannot be used: exit status 2.
    Input(Diagnostic),
    /// What was worked out could not be delivered: exit status 1.
    Undelivered(Diagnostic),
}

impl From<Diagnostic> for Fault {
    fn from(diagnostic: Diagnostic) -> Fault {
        Fault::Input(diagnostic)
    }
}

impl Fault {
    /// What is said of it.
    pub fn diagnostic(self) -> Diagnostic {
        let (Fault::Input(diagnostic) | Fault::Undelivered(diagnostic)) = self;
        diagnostic
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fault::Input(diagnostic) | Fault::Undelivered(diagnostic)) = self;
        diagnostic.fmt(f)
    }
}
