//! Whether sets of dies can protect each other.

use super::{FlashSpec, SpecError};

impl FlashSpec {
    /// Whether the parity that is asked for can be laid out, `program_pages` a program unit.
    pub(crate) fn check_parity(&self, program_pages: u32) -> Result<(), SpecError> {
        let key = "ftl.parity";
        let Some(data) = self.ftl.parity else { return Ok(()) };
        let geometry = &self.geometry;
        let dies = geometry.channels * geometry.ways * if self.die.interleave { geometry.dies } else { 1 };
        let rows = geometry.pages / program_pages;
        let fits = |data: u32| dies.is_multiple_of(data + 1) && rows.is_multiple_of(data + 1);
        if data == 0 || data >= dies || !fits(data) {
            let what = format!(
                "`{key}` is {data}: with parity, sets of one die more must fill the device's {dies} dies, and rows of as many program units its blocks of {rows}"
            );
            let allowed: Vec<String> = (1..dies.min(rows).min(256))
                .filter(|data| fits(*data))
                .map(|data| data.to_string())
                .collect();
            return Err(SpecError::new(key, what).help(if allowed.is_empty() {
                "no number does here: leave flash.ftl.parity out".to_owned()
            } else {
                format!("allowed are {}, or leave flash.ftl.parity out", allowed.join(", "))
            }));
        }
        let refused = [
            (self.ftl.page_choice().is_some(), "ftl.pages", "choosing pages by type"),
            (
                self.ftl.gc.copy_back,
                "ftl.gc.copy_back",
                "moving pages without the controller, which has to see them",
            ),
            (self.registers.is_some(), "registers", "registers that gather writes"),
        ];
        if let Some((_, other, which)) = refused.into_iter().find(|(is_set, ..)| *is_set) {
            let what = format!("{which} (`{other}`) cannot be combined with `{key}`");
            return Err(SpecError::new(other, what).help("leave one of the two out, or at its default"));
        }
        Ok(())
    }
}
