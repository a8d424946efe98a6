//! What an import has made, and what became of every setting.

use crate::setting::{Class, Setting, Values};
use crate::spec::{Key, toml};
use config::{Diagnostic, Place};
use std::fmt::Write as _;

/// What became of a setting.
#[derive(Clone, Debug)]
pub struct Told {
    /// How it fares.
    pub class: Class,
    /// Its name there.
    pub name: &'static str,
    /// Its text in the file.
    pub text: String,
    /// What becomes of it: its keys, or why there are none.
    pub says: String,
}

/// A configuration of another simulator, said here.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The tool that it is of.
    pub tool: &'static str,
    /// The file that it was read from.
    pub file: String,
    /// The shipped system that the spec inherits.
    pub inherits: &'static str,
    /// What the spec says it is.
    pub description: String,
    /// The keys that it says.
    pub keys: Vec<Key>,
    /// Every setting of the file, by class and then in the order of the tables.
    pub told: Vec<Told>,
    /// What a reader must know besides: where the tool does not do what it is told, and what that means here.
    pub remarks: Vec<String>,
    /// How to run it: lines of the head.
    pub usage: Vec<String>,
    /// Settings that the file does not say.
    pub(crate) defaulted: Vec<&'static str>,
    /// Where the file says the others.
    pub(crate) places: Vec<(&'static str, Place)>,
}

impl Imported {
    /// The spec as TOML: at its head what to run and what did not come with it.
    pub fn toml(&self) -> String {
        let mut head = format!(
            "From {} of {}. What is not said here is as in `{}`.\n",
            self.file, self.tool, self.inherits
        );
        for line in &self.usage {
            let _ = writeln!(head, "{line}");
        }
        let _ = write!(head, "\n{}", self.report(false));
        let defaulted = |name: &str| self.defaulted.contains(&name);
        toml(&head, (self.inherits, &self.description), &self.keys, &defaulted)
    }

    /// What became of every setting, class by class: of those that were carried only how many, unless `whole`.
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

    /// What a run must say: a line for each class that is not carried, and the remarks.
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

    /// A fault of the spec, which calls itself `spec`, placed where the file says what it comes from.
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

    /// The settings that a key comes from.
    fn origins(&self, path: &str) -> Vec<&'static str> {
        let is_above = |above: &str, below: &str| {
            below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let related = |key: &&Key| is_above(&key.path, path) || is_above(path, &key.path);
        self.keys.iter().filter(related).flat_map(|key| key.from.iter().copied()).collect()
    }

    /// Where the file says what a key comes from; the file, if it says nothing of it.
    fn place_of(&self, path: &str) -> Place {
        let from = self.origins(path);
        let said = self.places.iter().find(|(name, _)| from.contains(name));
        let place = said.map_or_else(
            || Place { source: self.file.clone(), ..Place::default() },
            |(_, place)| place.clone(),
        );
        Place { key: path.to_owned(), ..place }
    }

    /// Adds what became of the settings that a file says, and of those that it leaves to defaults.
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
