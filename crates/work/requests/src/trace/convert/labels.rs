//! What a stream is called in a written trace.

use std::collections::BTreeSet;

use crate::trace::flows::FlowNames;

/// Makes a name from a stream's name, its number, and how many names were taken already.
pub(crate) type Label = fn(name: &str, flow: u16, attempt: u32) -> String;

/// Gives each stream one name that no other has.
pub(crate) struct Labels {
    make: Label,
    by_flow: Vec<Option<String>>,
    used: BTreeSet<String>,
}

impl Labels {
    pub(crate) fn new(make: Label) -> Labels {
        Labels { make, by_flow: Vec::new(), used: BTreeSet::new() }
    }

    /// The name of `flow`, and whether it is used for the first time.
    pub(crate) fn of(&mut self, flow: u16, flows: &FlowNames) -> (&str, bool) {
        let index = usize::from(flow);
        if self.by_flow.len() <= index {
            self.by_flow.resize(index + 1, None);
        }
        let is_new = self.by_flow[index].is_none();
        if is_new {
            let mut attempt = 0;
            let label = loop {
                let label = (self.make)(flows.name(flow), flow, attempt);
                if self.used.insert(label.clone()) {
                    break label;
                }
                attempt += 1;
            };
            self.by_flow[index] = Some(label);
        }
        (self.by_flow[index].as_deref().unwrap_or_default(), is_new)
    }

    /// Every name given, by stream number.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.by_flow.iter().flatten().map(String::as_str)
    }

    /// Streams whose name changed: old, new.
    pub(crate) fn renamed(&self, flows: &FlowNames) -> Vec<(String, String)> {
        let named =
            self.by_flow.iter().enumerate().filter_map(|(n, label)| Some((n as u16, label.as_ref()?)));
        named
            .filter(|(flow, label)| flows.name(*flow) != label.as_str())
            .map(|(flow, label)| (flows.name(flow).to_owned(), label.clone()))
            .collect()
    }
}

/// The name with every character that `forbidden` names replaced, and a number if it is taken.
pub(crate) fn without(name: &str, forbidden: fn(char) -> bool, attempt: u32) -> String {
    let clean = name.replace(forbidden, "_");
    if attempt == 0 { clean } else { format!("{clean}-{attempt}") }
}
