//! Policy families: one list makes the configuration type, its serde and JSON Schema, the catalogue entry and the builder.
//!
//! In a file a policy is either a bare name, which means its default parameters, or a table with the name as its one
//! key: `victim = "greedy"` or `victim = { d_choices = { d = 10 } }`.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::catalogue::Family;
use crate::diag::Diagnostic;
use crate::layer::{Layers, Presets};

/// Name under which a choice asks its deserialiser for the one entry of a table, so that layers can decide it.
pub(crate) const CHOICE: &str = "$nandscape::choice";

/// Key in a JSON Schema that names the family that a value chooses from.
pub const FAMILY_KEY: &str = "x-family";

/// What [`policies!`](crate::policies) writes for a family beside its inherent methods.
pub trait Choice:
    Sized + Clone + fmt::Debug + PartialEq + Default + Serialize + DeserializeOwned + JsonSchema
{
    /// The catalogue's entry.
    const FAMILY: &'static Family;
    /// The names, in the order of the list.
    const NAMES: &'static [&'static str];
    /// The policy of that name with its default parameters.
    fn with_defaults(name: &str) -> Option<Self>;
    /// The policy of that name with the parameters that are the next value of `map`.
    ///
    /// # Errors
    /// The parameters do not fit, or the name is not one of [`Choice::NAMES`].
    fn with_parameters<'de, A: MapAccess<'de>>(name: &str, map: &mut A) -> Result<Self, A::Error>;
}

/// The parameters of a policy that has none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[doc(hidden)]
pub struct NoParameters {}

/// A name without the `r#` that a Rust keyword needs.
#[doc(hidden)]
pub const fn plain_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Reads a choice from a bare name or a table with one key.
#[doc(hidden)]
pub fn deserialize<'de, C: Choice, D: Deserializer<'de>>(deserializer: D) -> Result<C, D::Error> {
    deserializer.deserialize_newtype_struct(CHOICE, ChoiceVisitor(PhantomData))
}

struct ChoiceVisitor<C>(PhantomData<C>);

impl<'de, C: Choice> Visitor<'de> for ChoiceVisitor<C> {
    type Value = C;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}, bare or as the key of a table with parameters", C::NAMES.join(", "))
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<C, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<C, E> {
        C::with_defaults(name).ok_or_else(|| E::unknown_variant(name, C::NAMES))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<C, A::Error> {
        let Some(name) = map.next_key_seed(Name(C::NAMES))? else {
            return Err(A::Error::custom("an empty table chooses nothing; expected one name as its key"));
        };
        let choice = C::with_parameters(name, &mut map)?;
        match map.next_key_seed(Name(C::NAMES))? {
            None => Ok(choice),
            Some(second) => {
                Err(A::Error::custom(format_args!("only one can be chosen of `{name}`, `{second}`")))
            }
        }
    }
}

/// Reads one of the names, so that an unknown one is reported at its own place.
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static str;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = &'static str;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", self.0.join(", "))
    }
    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<&'static str, E> {
        self.0.iter().copied().find(|n| *n == name).ok_or_else(|| E::unknown_variant(name, self.0))
    }
}

/// The JSON Schema of a choice: every bare name, and every name with its parameters.
#[doc(hidden)]
pub fn json_schema(family: &Family, generator: &mut SchemaGenerator) -> Schema {
    let mut forms = Vec::new();
    for entry in family.entries {
        forms.push(json_schema!({ "const": entry.name, "description": entry.text() }));
        let parameters = match entry.parameters {
            Some(schema) => schema(generator),
            None => json_schema!({ "type": "object", "properties": {}, "additionalProperties": false }),
        };
        forms.push(json_schema!({
            "type": "object",
            "description": entry.text(),
            "properties": { entry.name: parameters },
            "required": [entry.name],
            "additionalProperties": false,
        }));
    }
    json_schema!({ "description": family.text(), "oneOf": forms, FAMILY_KEY: family.name })
}

/// The contract of every family, for a test beside each list: it is documented to the last parameter, every policy
/// reads back as it was written, a bare name means the default parameters, and a misspelt parameter is refused.
///
/// # Errors
/// What is broken, and in which policy.
pub fn check_family<C: Choice>() -> Result<(), Diagnostic> {
    let family = C::FAMILY;
    let broken = |name: &str, what: &str| Err(Diagnostic::new(format!("{}.{name}: {what}", family.name)));
    if family.text().is_empty() {
        return broken("", "the family has no documentation");
    }
    let names: Vec<_> = family.entries.iter().map(|e| e.name).collect();
    if names != C::NAMES || family.entries.iter().filter(|e| e.default).count() != 1 {
        return broken("", "the catalogue and the list differ");
    }
    for entry in family.entries {
        let name = entry.name;
        if entry.text().is_empty() {
            return broken(name, "no documentation");
        }
        if let Some(param) = entry.params().into_iter().find(|p| p.doc.is_empty()) {
            return broken(name, &format!("parameter `{}` has no documentation", param.key));
        }
        let Some(policy) = C::with_defaults(name) else { return broken(name, "not in the list") };
        if entry.default != (policy == C::default()) {
            return broken(name, "the default of the catalogue is not the default of the type");
        }
        let written = toml::Value::try_from(&policy)
            .map_err(|fault| Diagnostic::new(format!("{}.{name}: {fault}", family.name)))?;
        for text in [format!("\"{name}\""), format!("{{ {name} = {{}} }}"), written.to_string()] {
            if read::<C>(&text)? != policy {
                return broken(name, &format!("`{text}` does not read as the default parameters"));
            }
        }
        if read::<C>(&format!("{{ {name} = {{ no-such-parameter = 1 }} }}")).is_ok() {
            return broken(name, "a misspelt parameter is accepted (deny_unknown_fields is missing)");
        }
    }
    Ok(())
}

/// Reads a choice as a file would have it.
fn read<C: Choice>(text: &str) -> Result<C, Diagnostic> {
    #[derive(Deserialize)]
    struct File<C> {
        policy: C,
    }
    struct NoPresets;
    impl Presets for NoPresets {
        fn find(&self, _: &str) -> Option<(String, String)> {
            None
        }
        fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }
    let text = format!("policy = {text}");
    Layers::from_text("policy", &text, &NoPresets)?.parse::<File<C>>().map(|file| file.policy)
}

/// The position of a name in a family, as serde counts variants.
#[doc(hidden)]
pub fn position(family: &Family, name: &str) -> u32 {
    family.entries.iter().take_while(|entry| entry.name != name).count() as u32
}

/// What the macro's output names, so that its caller needs no dependency of its own.
#[doc(hidden)]
pub mod reexport {
    pub use schemars::{JsonSchema, Schema, SchemaGenerator};
    pub use serde::de::MapAccess;
    pub use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
}
