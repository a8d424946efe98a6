//! Policy families: one list defines the configuration type, its serde and JSON Schema, the catalogue entry and the
//! builder.
//!
//! In a file a policy is either a bare name, with default parameters, or a table with the name as its only key:
//! `victim = "greedy"` or `victim = { d_choices = { d = 10 } }`.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::catalogue::Family;
use crate::diag::Diagnostic;
use crate::layer::{Layers, Presets};

/// Name under which a choice asks its deserialiser for the one entry of a table, so that layers can select it.
pub(crate) const CHOICE: &str = "$nandscape::choice";

/// Key in a JSON Schema that names the family that a value chooses from.
pub const FAMILY_KEY: &str = "x-family";

/// Items that [`policies!`](crate::policies) generates for a family besides its inherent methods.
pub trait Choice:
    Sized + Clone + fmt::Debug + PartialEq + Default + Serialize + DeserializeOwned + JsonSchema
{
    /// Catalogue entry of the family.
    const FAMILY: &'static Family;
    /// Policy names, in list order.
    const NAMES: &'static [&'static str];
    /// Returns the policy of that name with its default parameters.
    fn with_defaults(name: &str) -> Option<Self>;
    /// Returns the policy of that name, with the next value of `map` as its parameters.
    ///
    /// # Errors
    /// The parameters do not fit, or the name is not one of [`Choice::NAMES`].
    fn with_parameters<'de, A: MapAccess<'de>>(name: &str, map: &mut A) -> Result<Self, A::Error>;
}

/// Parameters of a policy without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[doc(hidden)]
pub struct NoParameters {}

/// Removes the `r#` that a Rust keyword needs from a name.
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
            return Err(A::Error::custom("an empty table makes no choice; expected one name as its key"));
        };
        let choice = C::with_parameters(name, &mut map)?;
        match map.next_key_seed(Name(C::NAMES))? {
            None => Ok(choice),
            Some(second) => Err(A::Error::custom(format_args!("choose only one of `{name}`, `{second}`"))),
        }
    }
}

/// Reader of one of the names, so that an unknown name is reported at its own place.
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

/// Returns the JSON Schema of a choice: every bare name, and every name with its parameters.
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

/// Checks the contract of every family, for a test beside each list: every policy and parameter is documented, every
/// policy reads back as written, a bare name means the default parameters, and a misspelt parameter is refused.
///
/// # Errors
/// The broken rule and the policy that breaks it.
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

/// Reads a choice as it is written in a file.
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

/// Returns the position of a name in a family, as serde counts variants.
#[doc(hidden)]
pub fn position(family: &Family, name: &str) -> u32 {
    family.entries.iter().take_while(|entry| entry.name != name).count() as u32
}

/// Items that the macro's output uses, so that its caller needs no dependency of its own.
#[doc(hidden)]
pub mod reexport {
    pub use schemars::{JsonSchema, Schema, SchemaGenerator};
    pub use serde::de::MapAccess;
    pub use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
}

/// Defines a policy family from one list.
///
/// ```text
/// policies! {
///     /// Which closed block garbage collection reclaims next.
///     pub family VictimPolicy: dyn Victim, context VictimContext {
///         /// Fewest valid units first.
///         default greedy => greedy::Greedy::new,
///         /// The best of a few blocks drawn at random.
///         ///
///         /// Later paragraphs are shown by `explain` only.
///         d_choices(d_choices::Params) => d_choices::DChoices::new,
///     }
/// }
/// ```
///
/// The first entry is the default. Parameters implement `Default + Clone + Debug + PartialEq`, serde's traits with
/// `#[serde(default, deny_unknown_fields)]`, and `JsonSchema`; each field has a doc comment. The constructor is
/// `fn(&Params, &Context) -> P`, or `fn(&Context) -> P` without parameters. A policy named like a Rust keyword is
/// written `r#static` in the list and `static` in a file.
///
/// The list becomes an enum whose variants are named as in a file (`VictimPolicy::d_choices(Params)`), with `Default`,
/// serde, `JsonSchema`, [`Choice`], `FAMILY`, `all_defaults()`, `name()` and
/// `build(&self, &Context) -> Box<dyn Victim>`.
///
/// A family does not know its keys: any field of its type chooses from it, and the catalogue finds those fields in the
/// schema ([`listed`](crate::catalogue::listed)).
///
/// A family that only chooses, and builds nothing, has `choice` as its object and no constructors. It may have derives:
///
/// ```text
/// policies! {
///     /// The order in which consecutive pages visit the parallel units.
///     #[derive(Copy, Eq)]
///     pub family PageLayout: choice {
///         /// Channel, way, die, plane.
///         default cwdp,
///         /// Plane, way, die, channel.
///         pwdc,
///     }
/// }
/// ```
#[macro_export]
macro_rules! policies {
    (
        $(#[doc = $doc:expr])* $(#[derive($($derive:path),+ $(,)?)])?
        $vis:vis family $family:ident: choice {
            $(#[doc = $default_doc:expr])* default $default:ident $(($default_params:ty))?
            $(, $(#[doc = $entry_doc:expr])* $entry:ident $(($entry_params:ty))?)* $(,)?
        }
    ) => {
        $crate::policies! { @config
            [$(#[doc = $doc])*] [$($($derive),+)?] [$vis] $family
            {
                [$(#[doc = $default_doc])*] true $default [$($default_params)?]
                $([$(#[doc = $entry_doc])*] false $entry [$($entry_params)?])*
            }
        }
    };
    (
        $(#[doc = $doc:expr])* $(#[derive($($derive:path),+ $(,)?)])?
        $vis:vis family $family:ident: $object:ty, context $context:ty {
            $(#[doc = $default_doc:expr])* default $default:ident $(($default_params:ty))? => $default_new:expr
            $(, $(#[doc = $entry_doc:expr])* $entry:ident $(($entry_params:ty))? => $new:expr)* $(,)?
        }
    ) => {
        $crate::policies! { @config
            [$(#[doc = $doc])*] [$($($derive),+)?] [$vis] $family
            {
                [$(#[doc = $default_doc])*] true $default [$($default_params)?]
                $([$(#[doc = $entry_doc])*] false $entry [$($entry_params)?])*
            }
        }
        impl $family {
            /// Builds the policy from its parameters and the component's context.
            $vis fn build(&self, context: &$context) -> ::std::boxed::Box<$object> {
                match self {
                    $crate::policies!(@pattern $family, $default, params, [$($default_params)?]) => {
                        $crate::policies!(@new $default_new, params, context, [$($default_params)?])
                    }
                    $($crate::policies!(@pattern $family, $entry, params, [$($entry_params)?]) => {
                        $crate::policies!(@new $new, params, context, [$($entry_params)?])
                    })*
                }
            }
        }
    };

    // Everything but the builder, for a uniform list.
    (@config
        [$(#[doc = $doc:expr])*] [$($derive:path),*] [$vis:vis] $family:ident
        { $([$(#[doc = $entry_doc:expr])*] $is_default:literal $name:ident [$($params:ty)?])+ }
    ) => {
        $(#[doc = $doc])*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Debug, PartialEq, $($derive),*)]
        $vis enum $family {
            $($(#[doc = $entry_doc])* $name $(($params))?,)+
        }

        #[allow(dead_code)]
        impl $family {
            /// Catalogue entry of this family.
            $vis const FAMILY: &'static $crate::catalogue::Family = &$crate::catalogue::Family {
                name: stringify!($family),
                doc: concat!($($doc, "\n"),*),
                entries: &[$($crate::catalogue::Entry {
                    name: $crate::policy::plain_name(stringify!($name)),
                    doc: concat!($($entry_doc, "\n"),*),
                    default: $is_default,
                    parameters: $crate::policies!(@schema [$($params)?]),
                }),+],
            };
            /// Returns every policy of the family with its default parameters, in list order.
            $vis fn all_defaults() -> ::std::vec::Vec<$family> {
                ::std::vec![$($crate::policies!(@value $family, $name, [$($params)?])),+]
            }
            /// Returns the name of this policy in a file.
            $vis const fn name(&self) -> &'static str {
                match self {
                    $($family::$name { .. } => $crate::policy::plain_name(stringify!($name)),)+
                }
            }
        }

        impl $crate::policy::Choice for $family {
            const FAMILY: &'static $crate::catalogue::Family = $family::FAMILY;
            const NAMES: &'static [&'static str] = &[$($crate::policy::plain_name(stringify!($name))),+];
            fn with_defaults(name: &str) -> ::std::option::Option<$family> {
                $(if name == $crate::policy::plain_name(stringify!($name)) {
                    return ::std::option::Option::Some($crate::policies!(@value $family, $name, [$($params)?]));
                })+
                ::std::option::Option::None
            }
            fn with_parameters<'de, A: $crate::policy::reexport::MapAccess<'de>>(
                name: &str,
                map: &mut A,
            ) -> ::std::result::Result<$family, A::Error> {
                $(if name == $crate::policy::plain_name(stringify!($name)) {
                    return $crate::policies!(@read $family, $name, map, [$($params)?]);
                })+
                ::std::result::Result::Err($crate::policy::reexport::de::Error::unknown_variant(
                    name,
                    <$family as $crate::policy::Choice>::NAMES,
                ))
            }
        }

        impl ::std::default::Default for $family {
            fn default() -> $family {
                // The macro puts the default first.
                $crate::policies!(@first $([$family, $name, [$($params)?]])+)
            }
        }

        impl $crate::policy::reexport::Serialize for $family {
            fn serialize<S: $crate::policy::reexport::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                let (name, position) = (self.name(), $crate::policy::position($family::FAMILY, self.name()));
                match self {
                    $($crate::policies!(@pattern $family, $name, params, [$($params)?]) => {
                        $crate::policies!(@write $family, name, position, params, serializer, [$($params)?])
                    })+
                }
            }
        }

        impl<'de> $crate::policy::reexport::Deserialize<'de> for $family {
            fn deserialize<D: $crate::policy::reexport::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<$family, D::Error> {
                $crate::policy::deserialize(deserializer)
            }
        }

        impl $crate::policy::reexport::JsonSchema for $family {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($family).into()
            }
            fn json_schema(
                generator: &mut $crate::policy::reexport::SchemaGenerator,
            ) -> $crate::policy::reexport::Schema {
                $crate::policy::json_schema($family::FAMILY, generator)
            }
        }
    };

    // With and without parameters.
    (@pattern $family:ident, $name:ident, $bound:ident, []) => { $family::$name };
    (@pattern $family:ident, $name:ident, $bound:ident, [$params:ty]) => { $family::$name($bound) };
    (@new $new:expr, $bound:ident, $context:ident, []) => { ::std::boxed::Box::new($new($context)) };
    (@new $new:expr, $bound:ident, $context:ident, [$params:ty]) => {
        ::std::boxed::Box::new($new($bound, $context))
    };
    (@value $family:ident, $name:ident, []) => { $family::$name };
    (@value $family:ident, $name:ident, [$params:ty]) => {
        $family::$name(<$params as ::std::default::Default>::default())
    };
    (@first [$family:ident, $name:ident, [$($params:ty)?]] $($rest:tt)*) => {
        $crate::policies!(@value $family, $name, [$($params)?])
    };
    (@schema []) => { ::std::option::Option::None };
    (@schema [$params:ty]) => {
        ::std::option::Option::Some(<$params as $crate::policy::reexport::JsonSchema>::json_schema)
    };
    (@read $family:ident, $name:ident, $map:ident, []) => {
        $map.next_value::<$crate::policy::NoParameters>().map(|_| $family::$name)
    };
    (@read $family:ident, $name:ident, $map:ident, [$params:ty]) => {
        $map.next_value::<$params>().map($family::$name)
    };
    (@write $family:ident, $name:ident, $position:ident, $bound:ident, $serializer:ident, []) => {
        $serializer.serialize_unit_variant(stringify!($family), $position, $name)
    };
    (@write $family:ident, $name:ident, $position:ident, $bound:ident, $serializer:ident, [$params:ty]) => {
        $serializer.serialize_newtype_variant(stringify!($family), $position, $name, $bound)
    };
}
