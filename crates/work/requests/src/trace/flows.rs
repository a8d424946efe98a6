//! The streams of a trace: devices, volumes, hosts, files.

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

/// Number of flows with a name of their own; the rest share [`FlowNames::OTHER`].
const NAMED: usize = u16::MAX as usize;
/// The longest name: 65,535 of them must stay small.
pub(crate) const MAX_NAME: usize = 255;

/// Numbers the streams of a trace in the order they first appear.
#[derive(Clone, Debug, Default)]
pub struct FlowNames {
    ids: FxHashMap<Box<[u8]>, u16>,
    names: Vec<String>,
    last_key: Vec<u8>,
    last_id: Option<u16>,
    shared: u64,
}

impl FlowNames {
    /// The flow that every name after the first 65,535 shares.
    pub const OTHER: u16 = u16::MAX;

    /// The names; the flow is the index.
    pub fn names(&self) -> &[String] {
        &self.names
    }
    /// The name of a flow.
    pub fn name(&self, flow: u16) -> &str {
        self.names.get(usize::from(flow)).map_or("other", String::as_str)
    }
    /// Requests that had to share the flow `other`.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// The number of the flow called `key`; `None` if the name is too long.
    pub(crate) fn number(&mut self, key: &[u8]) -> Option<u16> {
        // Requests of one stream come in runs.
        if self.last_id.is_some() && self.last_key == key {
            return self.last_id;
        }
        let id = match self.ids.get(key) {
            Some(&id) => id,
            None if key.len() > MAX_NAME => return None,
            None if self.names.len() == NAMED => {
                self.shared += 1;
                return Some(FlowNames::OTHER);
            }
            None => self.add(key),
        };
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last_id = Some(id);
        Some(id)
    }

    fn add(&mut self, key: &[u8]) -> u16 {
        let id = self.names.len() as u16;
        let name = text::shown(key, MAX_NAME);
        self.names.push(if name.is_empty() { "unnamed".to_owned() } else { name });
        self.ids.insert(key.into(), id);
        id
    }
}

impl Serialize for FlowNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_last_number_share_one_flow_and_are_counted() {
        let mut flows = FlowNames::default();
        for n in 0..65_535_u32 {
            assert_eq!(flows.number(n.to_string().as_bytes()), Some(n as u16));
        }
        assert_eq!(flows.number(b"one too many"), Some(FlowNames::OTHER));
        assert_eq!(flows.number(b"two too many"), Some(FlowNames::OTHER));
        assert_eq!(flows.number(b"17"), Some(17));
        assert_eq!(flows.shared(), 2);
        assert_eq!(flows.name(FlowNames::OTHER), "other");
        assert_eq!(flows.name(17), "17");
    }
}
