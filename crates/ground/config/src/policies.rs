//! The macro that turns one list into a policy family.

/// Makes a policy family from one list.
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
/// `fn(&Params, &Context) -> P`, or `fn(&Context) -> P` without parameters. A policy named by a Rust keyword is written
/// `r#static` in the list and `static` in a file.
///
/// The list becomes an enum whose variants have the names of the file (`VictimPolicy::d_choices(Params)`), with
/// `Default`, serde, `JsonSchema`, [`Choice`](crate::policy::Choice), `FAMILY`, `all_defaults()`, `name()` and
/// `build(&self, &Context) -> Box<dyn Victim>`.
///
/// A family knows no key: any field of its type chooses from it, and the catalogue finds those fields in the schema
/// ([`listed`](crate::catalogue::listed)).
///
/// A family that only chooses, and builds nothing, has `choice` for its object and no constructors; derives can be
/// added to it:
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
            /// Builds the policy from its parameters and what the part knows.
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
            /// The catalogue's entry of this family.
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
            /// Every policy of the family with its default parameters, in the order of the list.
            $vis fn all_defaults() -> ::std::vec::Vec<$family> {
                ::std::vec![$($crate::policies!(@value $family, $name, [$($params)?])),+]
            }
            /// The name that a file has for this policy.
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
