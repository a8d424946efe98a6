//! One list makes a type, its serde, schema, catalogue entry and builder, and they agree.

use crate::demo::{PageLayout, Spec, VictimContext, VictimPolicy, d_choices};
use config::policy::{Choice, check_family};
use config::{catalogue, schema};

/// Returns the families with the keys of the demonstration that choose from them.
fn families() -> Vec<catalogue::Listed> {
    let params = schema::params(&schema::of::<Spec>(), "").unwrap();
    catalogue::listed(&[VictimPolicy::FAMILY, PageLayout::FAMILY], &params)
}

#[test]
fn the_families_keep_their_contract() {
    check_family::<VictimPolicy>().unwrap();
    check_family::<PageLayout>().unwrap();
}

#[test]
fn the_first_of_the_list_is_the_default() {
    assert_eq!(VictimPolicy::default(), VictimPolicy::greedy);
    let all = VictimPolicy::all_defaults();
    assert_eq!(all, [VictimPolicy::greedy, VictimPolicy::d_choices(d_choices::Params::default())]);
    assert_eq!(all.iter().map(VictimPolicy::name).collect::<Vec<_>>(), VictimPolicy::NAMES);
    assert_eq!(PageLayout::NAMES, ["cwdp", "static"]);
}

#[test]
fn a_policy_is_built_from_its_parameters_and_the_context() {
    let context = VictimContext { blocks: 7 };
    assert_eq!(VictimPolicy::greedy.build(&context).describe(), "greedy over 7");
    let params = d_choices::Params { d: 3, ..Default::default() };
    assert_eq!(VictimPolicy::d_choices(params).build(&context).describe(), "best of 3 over 7");
}

#[test]
fn policies_read_and_write_in_json_too() {
    let params = d_choices::Params { d: 3, ..Default::default() };
    let json = serde_json::to_value(VictimPolicy::d_choices(params.clone())).unwrap();
    assert_eq!(json, serde_json::json!({ "d_choices": { "d": 3, "rest": "3ms" } }));
    assert_eq!(serde_json::from_value::<VictimPolicy>(json).unwrap(), VictimPolicy::d_choices(params));
    assert_eq!(serde_json::to_value(PageLayout::r#static).unwrap(), "static");
    assert_eq!(serde_json::from_str::<VictimPolicy>("\"greedy\"").unwrap(), VictimPolicy::greedy);
    let two = serde_json::from_str::<VictimPolicy>(r#"{ "greedy": {}, "d_choices": {} }"#);
    assert!(two.unwrap_err().to_string().contains("choose only one of"));
    assert!(serde_json::from_str::<VictimPolicy>("{}").is_err());
}

#[test]
fn the_contract_notices_a_careless_policy() {
    mod careless {
        #[derive(
            Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(default)]
        pub(super) struct Params {
            /// Something.
            pub(super) x: u32,
        }
        #[derive(
            Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(default, deny_unknown_fields)]
        pub(super) struct Undocumented {
            pub(super) x: u32,
        }
    }
    config::policies! {
        /// A family.
        family Lax: choice {
            /// Accepts anything.
            default lax(careless::Params),
        }
    }
    config::policies! {
        /// A family.
        family Mute: choice {
            /// Explains nothing.
            default mute(careless::Undocumented),
        }
    }
    assert!(check_family::<Lax>().unwrap_err().what.contains("deny_unknown_fields"));
    assert!(check_family::<Mute>().unwrap_err().what.contains("parameter `x` has no documentation"));
}

#[test]
fn the_catalogue_has_texts_and_parameters() {
    let entries = VictimPolicy::FAMILY.entries;
    assert_eq!(entries[0].summary(), "Fewest valid units first, ties to the older block.");
    assert!(entries[0].text().ends_with("\n\nThe second paragraph is for `explain`."));
    assert!(entries[0].params().is_empty());
    let params = entries[1].params();
    let shown: Vec<_> =
        params.iter().map(|p| (p.key.as_str(), p.kind_and_default(), p.doc.as_str())).collect();
    let units = "duration (ps, ns, us, ms, s, min, h, d), up to 1h, default \"3ms\"";
    assert_eq!(
        shown,
        [
            ("d", "integer, 1 or more, default 10".to_owned(), "Blocks drawn at random for one decision."),
            ("rest", units.to_owned(), "How long a block rests before it may be drawn."),
        ]
    );
}

#[test]
fn list_shows_families_and_one_line_for_each_policy() {
    let families = families();
    let all = catalogue::list(&families, None).unwrap();
    assert!(all.contains("flash.gc.fallback\nflash.gc.victim\n  Which closed block"), "{all}");
    assert!(
        all.contains("    greedy (default)  Fewest valid units first, ties to the older block.\n"),
        "{all}"
    );
    assert!(all.contains("    d_choices         The best of a few"), "{all}");
    for name in ["victim", "fallback", "gc.victim", "flash.gc", "flash.gc.victim"] {
        let one = catalogue::list(&families, Some(name)).unwrap();
        assert!(one.contains("d_choices") && !one.contains("cwdp"), "{name}: {one}");
    }
    assert!(catalogue::list(&families, Some("flash")).unwrap().contains("cwdp"));
    let unknown = catalogue::list(&families, Some("victm")).unwrap_err();
    assert_eq!(unknown.nearest.as_deref(), Some("victim"));
    assert_eq!(unknown.allowed, ["flash.gc.fallback", "flash.gc.victim", "flash.layout"]);
}

#[test]
fn explain_shows_text_parameters_and_how_to_write_it() {
    let families = families();
    let text = catalogue::explain(&families, "victim.d_choices").unwrap();
    for part in [
        "d_choices: a choice of flash.gc.fallback, flash.gc.victim\n",
        "Van Houdt, SIGMETRICS 2013.",
        "  d: integer, 1 or more, default 10\n      Blocks drawn at random",
        "  victim = \"d_choices\"\n  victim = { d_choices = { d = 10 } }",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A family of several keys is explained once, and the file example has the requested key.
    let first = catalogue::explain(&families, "d_choices").unwrap();
    assert_eq!(first, text.replace("  victim =", "  fallback ="));
    assert_eq!(catalogue::explain(&families, "flash.gc.victim.d_choices").unwrap(), text);
    assert!(catalogue::explain(&families, "layout").unwrap().contains("flash.layout: a family of 2"));
    assert!(catalogue::explain(&families, "greedy").unwrap().contains("No parameters."));
    assert!(catalogue::explain(&families, "static").unwrap().contains("layout = \"static\""));
    let unknown = catalogue::explain(&families, "gredy").unwrap_err();
    assert_eq!(unknown.nearest.as_deref(), Some("greedy"));
    assert!(catalogue::explain(&families, "layout.greedy").is_err());
}

#[test]
fn params_walks_every_key_with_type_unit_default_and_text() {
    let schema = schema::of::<Spec>();
    let all = schema::params(&schema, "").unwrap();
    let shown: Vec<_> = all
        .iter()
        .map(|p| (p.key.as_str(), p.kind.as_str(), p.allowed.as_str(), p.default.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        shown,
        [
            ("flash.gc.fallback", "one of greedy, d_choices", "", "none"),
            ("flash.gc.fallback.d_choices.d", "integer", "1 or more", "10"),
            ("flash.gc.fallback.d_choices.rest", "duration", "up to 1h", "\"3ms\""),
            ("flash.gc.threshold", "share", "0 to 1", "0.05"),
            ("flash.gc.victim", "one of greedy, d_choices", "", "\"greedy\""),
            ("flash.gc.victim.d_choices.d", "integer", "1 or more", "10"),
            ("flash.gc.victim.d_choices.rest", "duration", "up to 1h", "\"3ms\""),
            ("flash.geometry.channels", "integer", "1 to 64; at most 256 dies in all", "-"),
            ("flash.geometry.page", "size", "512B to 1MiB, a power of two", "-"),
            ("flash.geometry.ways", "integer", "1 to 64; at most 256 dies in all", "-"),
            ("flash.layout", "one of cwdp, static", "", "\"cwdp\""),
            ("flash.read", "duration", "up to 1h", "-"),
            ("link.*.bandwidth", "bandwidth", "1MB/s or more", "-"),
            ("tenant.*.job", "one of idle, random", "", "\"idle\""),
            ("tenant.*.job.random.depth", "integer", "0 or more", "-"),
            ("tenant.*.name", "text", "", "-"),
            ("threads", "integer", "0 to 65535", "none"),
        ]
    );
    let page = all.iter().find(|p| p.key == "flash.geometry.page").unwrap();
    assert_eq!(page.doc, "Data in a page, without its spare area.");
    assert!(page.units.contains(&"KiB".to_owned()));

    let below = schema::params(&schema, "flash.geometry").unwrap();
    assert_eq!(below.len(), 3);
    let unknown = schema::params(&schema, "flash.geometri").unwrap_err();
    assert_eq!(unknown.nearest.as_deref(), Some("flash.geometry"));
    assert!(unknown.allowed.contains(&"flash.gc".to_owned()), "{unknown}");
    // A prefix ends where a key ends.
    assert!(schema::params(&schema, "flash.geo").is_err());
}

#[test]
fn a_type_that_contains_itself_is_walked_once() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Tree {
        /// A number.
        weight: u32,
        /// More of the same.
        children: Vec<Tree>,
    }
    let all = schema::params(&schema::of::<Tree>(), "").unwrap();
    assert_eq!(all.iter().filter(|p| p.key == "weight").count(), 1);
    assert!(all.iter().any(|p| p.key.starts_with("children")));
}

#[test]
fn the_schema_of_a_file_lets_keys_be_inherited() {
    let resolved = schema::of::<Spec>();
    assert_eq!(resolved["required"], serde_json::json!(["flash"]));
    assert_eq!(resolved["additionalProperties"], false);
    let file = schema::of_file(schema::of::<Spec>());
    assert!(file.get("required").is_none());
    for table in ["Geometry", "Link"] {
        assert!(file["$defs"][table].get("required").is_none(), "{table}");
    }
    assert_eq!(file["properties"]["inherits"]["type"], "string");
    // A choice still needs its one name.
    let forms = file["$defs"]["VictimPolicy"]["oneOf"].as_array().unwrap();
    assert!(forms.iter().any(|form| form["required"] == serde_json::json!(["d_choices"])), "{forms:?}");
}
