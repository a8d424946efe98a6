//! A value that parses but cannot be built.

/// A value that parses but cannot be built. Its key is relative to the table that the part reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Key inside the part's table, dotted.
    pub key: String,
    /// What is wrong, with the arithmetic.
    pub what: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl SpecError {
    /// `what` is wrong with the value of `key`.
    pub fn new(key: &str, what: impl Into<String>) -> SpecError {
        SpecError { key: key.into(), what: what.into(), help: None }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> SpecError {
        self.help = Some(help.into());
        self
    }

    /// The same error as the owner of the table knows it, which calls it `table`.
    #[must_use]
    pub fn within(mut self, table: &str) -> SpecError {
        self.key = format!("{table}.{}", self.key);
        self
    }

    /// `value`, if it is at least one.
    ///
    /// # Errors
    /// A value of zero.
    pub fn positive(key: &str, value: u64) -> Result<(), SpecError> {
        if value == 0 {
            return Err(SpecError::new(key, format!("`{key}` is 0, but must be at least 1")));
        }
        Ok(())
    }
}
