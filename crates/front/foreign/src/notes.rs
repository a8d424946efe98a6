//! Result of an import, with a report on every setting.

use crate::setting::{Class, Setting, Values};
use crate::spec::{Key, toml};
use config::{Diagnostic, Place};
use std::fmt::Write as _;

/// Report on one setting.
#[derive(Clone, Debug)]
pub struct Told {
    /// Outcome of the import.
    pub class: Class,
    /// Name in the original tool.
    pub name: &'static str,
    /// Text in the file.
    pub text: String,
    /// Keys that it became, or the reason for none.
    pub says: String,
}

/// Imported configuration of another simulator.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Original tool.
    pub tool: &'static str,
    /// File that it was read from.
    pub file: String,
    /// Shipped system that the spec inherits.
    pub inherits: &'static str,
    /// Description in the spec.
    pub description: String,
    /// Keys that the spec sets.
    pub keys: Vec<Key>,
    /// Report on every setting of the file, by class and then in the order of the tables.
    pub told: Vec<Told>,
    /// Remarks: where the tool does not do what its settings say, and the effect of that here.
    pub remarks: Vec<String>,
    /// Commands that run it: lines of the head.
    pub usage: Vec<String>,
    /// Settings that the file leaves at their defaults.
    pub(crate) defaulted: Vec<&'static str>,
    /// Places of all other settings in the file.
    pub(crate) places: Vec<(&'static str, Place)>,
}

impl Imported {
    /// Writes the spec as TOML, with commands and omitted settings in its head.
    pub fn toml(&self) -> String {
        let mut head = format!(
            "From {} of {}. All other values are those of `{}`.\n",
            self.file, self.tool, self.inherits
        );
        for line in &self.usage {
            let _ = writeln!(head, "{line}");
        }
        let _ = write!(head, "\n{}", self.report(false));
        let defaulted = |name: &str| self.defaulted.contains(&name);
        toml(&head, (self.inherits, &self.description), &self.keys, &defaulted)
    }

    /// Report on every setting by class. Carried settings are only counted, unless `whole`.
    pub fn report(&self, whole: bool) -> String {
        let count = |class: Class| self.told.iter().filter(|told| told.class == class).count();
        let counts: Vec<String> =
            Class::ALL.iter().map(|class| format!("{} {}", count(*class), class.name())).collect();
        let mut text = format!("{}: {} settings: {}\n", self.file, self.told.len(), counts.join("; "));
        for class in Class::ALL {
            let lines: Vec<&Told> = self.told.iter().filter(|told| told.class == class).collect();
            if lines.is_empty() || (class == Class::Carried && !whole) {
                continue;
            }
            let _ = writeln!(text, "\n{}", class.name());
            for told in lines {
                let _ = writeln!(text, "  {} = {}: {}", told.name, told.text, told.says);
            }
        }
        if !self.remarks.is_empty() {
            text.push_str("\nnote\n");
            self.remarks.iter().for_each(|remark| {
                let _ = writeln!(text, "  {remark}");
            });
        }
        text
    }

    /// Warnings for a run: a line for each class that was not carried, and the remarks.
    pub fn warnings(&self) -> Vec<String> {
        let of = |class: Class| {
            let names: Vec<&str> =
                self.told.iter().filter(|told| told.class == class).map(|told| told.name).collect();
            (class != Class::Carried && !names.is_empty())
                .then(|| format!("{}: {}: {}", self.file, class.name(), names.join(", ")))
        };
        let classes = Class::ALL.into_iter().filter_map(of);
        classes.chain(self.remarks.iter().map(|remark| format!("{}: {remark}", self.file))).collect()
    }

    /// Moves a fault of the generated spec, named `spec`, to the setting that its key comes from.
    pub fn placed(&self, mut fault: Diagnostic, spec: &str) -> Diagnostic {
        fault.also = fault.also.into_iter().map(|also| self.placed(also, spec)).collect();
        let mut from: Vec<&'static str> = Vec::new();
        for place in [&mut fault.place, &mut fault.beside].into_iter().flatten() {
            if place.source == spec {
                from.extend(self.origins(&place.key));
                **place = self.place_of(&place.key);
            }
        }
        let of = |name: &&str| match self.defaulted.contains(name) {
            true => format!("comes from `{name}`, which the file leaves at its default"),
            false => format!("comes from `{name}`"),
        };
        from.dedup();
        fault.listed.extend(from.iter().map(of));
        fault
    }

    /// Settings that a key comes from.
    fn origins(&self, path: &str) -> Vec<&'static str> {
        let is_above = |above: &str, below: &str| {
            below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let related = |key: &&Key| is_above(&key.path, path) || is_above(path, &key.path);
        self.keys.iter().filter(related).flat_map(|key| key.from.iter().copied()).collect()
    }

    /// Place of the setting that a key comes from; the file, if it does not set it.
    fn place_of(&self, path: &str) -> Place {
        let from = self.origins(path);
        let said = self.places.iter().find(|(name, _)| from.contains(name));
        let place = said.map_or_else(
            || Place { source: self.file.clone(), ..Place::default() },
            |(_, place)| place.clone(),
        );
        Place { key: path.to_owned(), ..place }
    }

    /// Adds the report on the settings of a file, and on those that it leaves to defaults.
    pub(crate) fn tell(&mut self, values: &Values) {
        for class in Class::ALL {
            for setting in values.settings().filter(|one| one.class == class && values.is_given(one.name)) {
                let says = self.says(setting);
                let told =
                    Told { class, name: setting.name, text: values.text(setting.name).to_owned(), says };
                self.told.push(told);
                self.places.push((setting.name, values.place(setting.name)));
            }
        }
        self.told.sort_by_key(|told| told.class);
        let left_out = values.settings().filter(|one| !values.is_given(one.name)).map(|one| one.name);
        self.defaulted.extend(left_out);
    }

    fn says(&self, setting: &Setting) -> String {
        let keys: Vec<String> = self
            .keys
            .iter()
            .filter(|key| key.from.contains(&setting.name))
            .map(|key| format!("{} = {}", key.path, key.value))
            .collect();
        match (keys.is_empty(), setting.says.is_empty()) {
            (true, _) => setting.says.to_owned(),
            (false, true) => keys.join(", "),
            (false, false) => format!("{} ({})", keys.join(", "), setting.says),
        }
    }
}
