//! Layers merge, every value remembers its place, and every fault names file, line, column, key and the way out.

use crate::demo::{Job, Spec, VictimPolicy, d_choices, shelf};
use config::{Diagnostic, Layers, Place, Resolved, schema};
use engine::Time;
use proptest::prelude::*;

fn load(text: &str) -> Resolved {
    Layers::from_text("mine.toml", text, &shelf()).unwrap_or_else(|fault| panic!("{fault}"))
}

fn fault(text: &str) -> Diagnostic {
    match Layers::from_text("mine.toml", text, &shelf()) {
        Ok(mut resolved) => resolved.parse::<Spec>().expect_err("a fault"),
        Err(fault) => fault,
    }
}

fn place(fault: &Diagnostic) -> &Place {
    fault.place.as_ref().expect("a place")
}

fn at(place: &Place) -> (&str, u64, u64) {
    (&place.source, place.line, place.column)
}

#[test]
fn three_layers_merge_and_remember() {
    let mut resolved = load("inherits = 'fast-ssd'\n[flash.geometry]\n  ways = 2\n");
    let layers: Vec<&str> = resolved.layers().collect();
    assert_eq!(layers, ["presets/base-ssd.toml", "presets/fast-ssd.toml", "mine.toml"]);
    let at = |key: &str| {
        let place = resolved.place(key);
        assert_eq!(place.key, key);
        (place.source, place.line, place.column, place.text)
    };
    let set = |file: &str, line, column, text: &str| (file.to_owned(), line, column, text.to_owned());
    assert_eq!(at("flash.geometry.ways"), set("mine.toml", 3, 10, "  ways = 2"));
    assert_eq!(at("flash.geometry.channels"), set("presets/fast-ssd.toml", 4, 12, "channels = 16"));
    assert_eq!(at("flash.geometry.page"), set("presets/base-ssd.toml", 7, 8, "page = '16KiB'"));
    assert_eq!(at("flash.read"), set("presets/fast-ssd.toml", 2, 14, "flash.read = '20us'"));
    let victim = "victim = { d_choices = { d = 30 } }";
    assert_eq!(at("flash.gc.victim.d_choices.d"), set("presets/base-ssd.toml", 10, 30, victim));
    assert_eq!(at("flash.gc.victim.d_choices"), set("presets/base-ssd.toml", 10, 12, victim));
    assert_eq!(at("tenant.0.name"), set("presets/base-ssd.toml", 12, 8, "name = 'first'"));
    // Not set: the nearest table above it that was, in the layer that set it last.
    assert_eq!(at("flash.geometry.planes"), set("mine.toml", 2, 8, "[flash.geometry]"));
    assert_eq!(at("flash.gc.victim.greedy.x"), set("presets/base-ssd.toml", 10, 1, victim));
    assert_eq!(at("host.cpu"), set("mine.toml", 0, 0, ""));

    let spec: Spec = resolved.parse().unwrap();
    assert_eq!((spec.flash.geometry.channels, spec.flash.geometry.ways), (16, 2));
    assert_eq!(spec.flash.read.time(), Time::from_us(20));
    assert_eq!(spec.flash.gc.threshold.get(), 0.07);
    let params = d_choices::Params { d: 30, ..Default::default() };
    assert_eq!(spec.flash.gc.victim, VictimPolicy::d_choices(params));
    assert_eq!(spec.tenant[0].job, Job::Idle);
}

#[test]
fn a_diagnostic_of_a_check_points_to_where_the_key_was_set() {
    let resolved = load("inherits = 'fast-ssd'");
    let shown = resolved.diagnose("flash.geometry.channels", "16 channels do not fit").to_string();
    assert!(shown.contains("presets/fast-ssd.toml:4:12  (key `flash.geometry.channels`)"), "{shown}");
    assert!(shown.contains("channels = 16"), "{shown}");
}

#[test]
fn of_several_inherited_layers_the_first_ranks_highest() {
    let channels = |text: &str| {
        let mut resolved = load(text);
        resolved.parse::<Spec>().unwrap().flash.geometry.channels
    };
    let (fast, base) = (channels("inherits = 'fast-ssd'"), channels("inherits = 'base-ssd'"));
    assert_ne!(fast, base);
    assert_eq!(channels("inherits = ['fast-ssd', 'base-ssd']"), fast);
    assert_eq!(channels("inherits = ['base-ssd', 'fast-ssd']"), base);
    let fault = fault("inherits = ['base-ssd', 3]");
    assert!(fault.to_string().contains("a list of names"), "{fault}");
}

#[test]
fn the_resolved_text_reads_as_the_same_specification() {
    // The lower alternative of a choice must not come back.
    let mut resolved = load("inherits = 'fast-ssd'\n[flash.gc.victim.greedy]\n");
    let spec: Spec = resolved.parse().unwrap();
    assert_eq!(spec.flash.gc.victim, VictimPolicy::greedy);
    let text = resolved.to_toml_string();
    assert!(!text.contains("inherits") && !text.contains("d_choices"), "{text}");
    assert_eq!(load(&text).parse::<Spec>().unwrap(), spec);
}

#[test]
fn the_highest_layer_decides_a_choice() {
    let victim = |text: &str, set: &[&str]| {
        let mut resolved = load(&format!("inherits = 'base-ssd'\n{text}"));
        set.iter().for_each(|s| resolved.set(s).unwrap());
        resolved.parse::<Spec>().unwrap().flash.gc.victim
    };
    let d = |d| VictimPolicy::d_choices(d_choices::Params { d, ..Default::default() });
    assert_eq!(victim("", &[]), d(30));
    assert_eq!(victim("flash.gc.victim = 'd_choices'", &[]), d(10));
    assert_eq!(victim("flash.gc.victim = { greedy = {} }", &[]), VictimPolicy::greedy);
    assert_eq!(victim("", &["flash.gc.victim=greedy"]), VictimPolicy::greedy);
    assert_eq!(victim("", &["flash.gc.victim.d_choices.d=5"]), d(5));
    assert_eq!(victim("flash.gc.victim = 'greedy'", &["flash.gc.victim.d_choices.d=5"]), d(5));
    assert_eq!(victim("", &["flash.gc.victim={ greedy = {} }"]), VictimPolicy::greedy);
    assert_eq!(victim("", &["flash.gc.victim.greedy={}", "flash.gc.victim.d_choices.d=6"]), d(6));
}

/// Tables that replace each other, like alternatives of a choice.
#[test]
fn the_highest_layer_decides_between_tables() {
    let has = |resolved: &Resolved, name: &str| resolved.table().contains_key(name);
    let both = ["flash", "tenant"];
    let mut resolved = load("inherits = 'fast-ssd'\ntenant = []\n");
    resolved.replace(&[], &both);
    assert!(has(&resolved, "tenant") && !has(&resolved, "flash"));
    // Entries of one layer both stay, and nothing is removed if the table does not exist.
    let mut resolved = load("inherits = 'fast-ssd'\ntenant = []\n[flash]\nread = '1us'\n");
    resolved.replace(&[], &both);
    resolved.replace(&["host", "cpu"], &both);
    assert!(has(&resolved, "tenant") && has(&resolved, "flash"));
}

#[test]
fn a_misspelt_key_names_file_line_and_the_right_key() {
    let fault = fault("inherits = 'base-ssd'\n[flash.geometry]\n  chanels = 2\n");
    assert_eq!(fault.what, "unknown key `chanels`");
    assert_eq!(at(place(&fault)), ("mine.toml", 3, 3));
    assert_eq!(place(&fault).key, "flash.geometry.chanels");
    assert_eq!(fault.nearest.as_deref(), Some("channels"));
    assert_eq!(fault.allowed, ["channels", "ways", "page"]);
    assert!(fault.also.is_empty(), "{fault}");
}

#[test]
fn misspelt_keys_inside_choices_arrays_and_dotted_keys_are_found_where_they_stand() {
    let cases = [
        ("flash.gc.victim.d_choices.dd = 3", 3, 27, "flash.gc.victim.d_choices.dd", Some("d")),
        (
            "flash.gc.victim = { d_choices = { d = 3, rst = '1ms' } }",
            3,
            42,
            "flash.gc.victim.d_choices.rst",
            Some("rest"),
        ),
        (
            "flash.gc.fallback = { d_choice = { d = 3 } }",
            3,
            23,
            "flash.gc.fallback.d_choice",
            Some("d_choices"),
        ),
        ("flash.gc.fallback = 'gredy'", 3, 21, "flash.gc.fallback", Some("greedy")),
        ("flash.gc.fallback.greedy.d = 3", 3, 26, "flash.gc.fallback.greedy.d", None),
        ("flash.layout = 'statik'", 3, 16, "flash.layout", Some("static")),
        ("tenant = [{ name = 'a' }, { nam = 'b', name = 'c' }]", 3, 29, "tenant.1.nam", Some("name")),
        ("tenant = [{ name = 'a', job = 'idel' }]", 3, 31, "tenant.0.job", Some("idle")),
        (
            "tenant = [{ name = 'a', job = { random = { dept = 1, depth = 1 } } }]",
            3,
            44,
            "tenant.0.job.random.dept",
            Some("depth"),
        ),
        ("[link.up]\nbandwidth = '1GB/s'\nbandwith = '1GB/s'", 5, 1, "link.up.bandwith", Some("bandwidth")),
        ("thread = 5", 3, 1, "thread", Some("threads")),
        ("inherit = 'fast-ssd'", 3, 1, "inherit", Some("inherits")),
    ];
    for (text, line, column, key, nearest) in cases {
        let fault = fault(&format!("inherits = 'base-ssd'\n\n{text}"));
        assert_eq!(at(place(&fault)), ("mine.toml", line, column), "{text}: {fault}");
        assert_eq!(place(&fault).key, key, "{text}");
        assert_eq!(fault.nearest.as_deref(), nearest, "{text}: {fault}");
    }
}

#[test]
fn a_wrong_value_names_what_is_expected() {
    let cases = [
        ("flash.geometry.channels = 'x'", "`x` is not an integer from 0 to 4294967295"),
        ("flash.geometry.channels = -1", "`-1` is out of range; expected an integer from 0 to 4294967295"),
        ("threads = 1e23", "`1e23` is out of range; expected an integer from 0 to 65535"),
        ("threads = 8.0", "`8.0` is written as a real number; write `8`; expected an integer"),
        ("threads = 1.5", "`1.5` is not an integer from 0 to 65535"),
        ("threads = true", "`true` is not an integer from 0 to 65535"),
        ("threads = 65536", "`65536` is out of range; expected an integer from 0 to 65535"),
        ("flash.read = 65", "the number 65 has no unit; expected a duration such as \"65us\""),
        ("flash.read = '65KiB'", "`65KiB` is a size, not a duration"),
        ("flash.read = 2020-01-01", "a date is not a duration such as \"65us\""),
        ("flash.gc.threshold = '101%'", "is not a share"),
        ("flash = 3", "`3` is not a table"),
        ("tenant = 'a'", "`a` is not an array"),
        ("tenant = [{}]", "missing key `name`"),
        ("flash.gc.fallback = {}", "an empty table makes no choice"),
        ("flash.gc.fallback = 7", "one of greedy, d_choices"),
        ("flash.gc.fallback = { greedy = {}, d_choices = {} }", "choose only one of `d_choices`, `greedy`"),
        ("tenant = [{ name = 'a', job = 'random' }]", "`random` needs parameters"),
        ("tenant = [{ name = 'a', job = { idle = { depth = 1 } } }]", "`idle` takes no parameters"),
    ];
    for (text, what) in cases {
        let fault = fault(&format!("inherits = 'base-ssd'\n{text}"));
        assert!(fault.what.contains(what), "{text}: {fault}");
        assert_eq!((place(&fault).source.as_str(), place(&fault).line), ("mine.toml", 2), "{text}: {fault}");
    }
}

#[test]
fn a_missing_key_names_its_table() {
    let fault = fault("[flash]\nread = '1us'\n[flash.geometry]\nchannels = 1\nways = 1\n");
    assert_eq!(fault.what, "missing key `page`");
    assert_eq!((place(&fault).line, place(&fault).key.as_str()), (3, "flash.geometry"));
    assert!(fault.help.unwrap().contains("`flash.geometry.page`"));
}

/// Reads all of a configuration, and tells the keys that are missing in one list.
fn read_whole(resolved: &mut Resolved, needed: &[&str]) -> Result<Spec, Diagnostic> {
    let document = schema::of::<Spec>();
    let keys: Vec<String> =
        schema::params(&document, "").unwrap().into_iter().map(|param| param.key).collect();
    let missing = schema::missing(&document, &resolved.table(), needed);
    let mut pieces = resolved.pieces(&keys, missing);
    let spec = pieces.read(&[], &[]);
    pieces.end(spec)
}

/// All missing keys are in one list: those of a present table as well as those of an absent one.
#[test]
fn all_missing_keys_are_told_at_once() {
    let whole = |text: &str, needed: &[&'static str]| {
        let mut resolved = Layers::from_text("mine.toml", text, &shelf()).unwrap();
        read_whole(&mut resolved, needed).expect_err("a fault")
    };
    let keys = |fault: &Diagnostic| -> Vec<String> {
        fault.listed.iter().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let found = whole("[flash]\nread = '1us'\n[flash.geometry]\nways = 1\n", &[]);
    assert_eq!(found.what, format!("{} keys are missing", found.listed.len()));
    // Keys without a default, except those of options: the same as when they are found one at a time.
    let geometry = ["flash.geometry.channels", "flash.geometry.page"];
    assert!(geometry.iter().all(|key| keys(&found).contains(&(*key).to_owned())), "{found}");
    assert!(!keys(&found).iter().any(|key| key.starts_with("link") || key == "flash.read"), "{found}");
    let mut text = "[flash]\nread = '1us'\n[flash.geometry]\nways = 1\n".to_owned();
    text.push_str("channels = 1\n");
    let one_less = whole(&text, &[]);
    assert_eq!(keys(&one_less).len() + 1, keys(&found).len());
    // A misspelt key is one fault, and the others are still reported; a wrong value is not a missing one.
    let found = whole("[flash.geometry]\nways = 'x'\nchanels = 1\n", &[]);
    let told: Vec<&str> = std::iter::once(&found).chain(&found.also).map(|f| f.what.as_str()).collect();
    assert_eq!(told[..2], ["`x` is not an integer from 0 to 4294967295", "unknown key `chanels`"]);
    let missing = keys(&found.also[1]);
    assert!(missing.contains(&"flash.read".to_owned()), "{found}");
    assert!(!missing.iter().any(|key| key.ends_with(".ways") || key.ends_with(".channels")), "{found}");
}

/// A list of missing keys is complete: with them the text can be read.
#[test]
fn without_what_is_listed_a_text_is_not_whole_and_with_it_it_is() {
    let full = load("inherits = 'base-ssd'").table();
    let full = toml::Value::Table(full);
    let mut resolved = Layers::from_text("mine.toml", "", &shelf()).unwrap();
    let fault = read_whole(&mut resolved, &[]).expect_err("a fault");
    for line in &fault.listed {
        let key = line.split_whitespace().next().unwrap();
        let value = key.split('.').try_fold(&full, |at, name| at.get(name));
        resolved.set(&format!("{key}={}", value.unwrap_or_else(|| panic!("{key}")))).unwrap();
    }
    read_whole(&mut resolved, &[]).unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn a_key_of_another_table_is_pointed_to() {
    let mut resolved = load("inherits = 'base-ssd'\nchannels = 4\n");
    let fault = read_whole(&mut resolved, &[]).unwrap_err();
    assert_eq!(fault.nearest.as_deref(), Some("flash.geometry.channels"), "{fault}");
    let mut resolved = load("inherits = 'base-ssd'\nflash.geometry.qd = 4\n");
    let fault = read_whole(&mut resolved, &[]).unwrap_err();
    assert!(fault.help.is_some_and(|help| help.contains("iodepth")));
}

#[test]
fn all_faults_are_reported_in_the_order_of_the_file() {
    let text = "
threadz = 4
[flash]
reed = '65us'
[flash.geometry]
ways = 'four'
page = '16KiB'
chanels = 8
[flash.gc]
victim = 'gredy'
";
    let fault = fault(text);
    let all: Vec<_> =
        std::iter::once(&fault).chain(&fault.also).map(|f| (place(f).line, f.what.as_str())).collect();
    assert_eq!(
        all,
        [
            (2, "unknown key `threadz`"),
            (4, "unknown key `reed`"),
            (6, "`four` is not an integer from 0 to 4294967295"),
            (8, "unknown key `chanels`"),
            (10, "unknown name `gredy`"),
        ],
        "{fault}"
    );
}

#[test]
fn consequences_of_a_fault_are_not_reported() {
    // Without the misspelt key a required one is missing; that is one mistake, not two.
    let fault = fault("inherits = 'base-ssd'\n[link.up]\nbandwith = '1GB/s'\n");
    assert_eq!(fault.what, "unknown key `bandwith`");
    assert!(fault.also.is_empty(), "{fault}");
}

#[test]
fn an_override_is_toml_or_text() {
    let mut resolved = load("inherits = 'base-ssd'");
    for set in [
        "flash.read=40us",
        "threads = 4",
        "link.up.bandwidth=1GB/s",
        "tenant.0.name=\"a = b\"",
        "flash.layout=static",
    ] {
        resolved.set(set).unwrap();
    }
    let spec: Spec = resolved.parse().unwrap();
    assert_eq!((spec.flash.read.time(), spec.threads), (Time::from_us(40), Some(4)));
    assert_eq!(spec.link["up"].bandwidth.bytes_per_s(), 1_000_000_000);
    assert_eq!(spec.tenant[0].name, "a = b");
    assert_eq!(spec.flash.layout.name(), "static");
    let place = resolved.place("flash.read");
    assert_eq!(at(&place), ("--set", 0, 12));
    assert_eq!(place.text, "flash.read=40us");
}

#[test]
fn a_misspelt_override_points_into_the_option() {
    let mut resolved = load("inherits = 'base-ssd'");
    resolved.set("flash.geometry.chanels=4").unwrap();
    let fault = resolved.parse::<Spec>().unwrap_err();
    assert_eq!(at(place(&fault)), ("--set", 0, 16));
    assert_eq!(place(&fault).key, "flash.geometry.chanels");
    assert_eq!(fault.nearest.as_deref(), Some("channels"));
    let mut resolved = load("inherits = 'base-ssd'");
    resolved.set("flsh.geometry.channels=4").unwrap();
    let fault = resolved.parse::<Spec>().unwrap_err();
    assert_eq!(at(place(&fault)), ("--set", 0, 1));
    assert_eq!(fault.nearest.as_deref(), Some("flash"));
    let mut resolved = load("inherits = 'base-ssd'");
    resolved.set("flash.geometry.channels=four").unwrap();
    let fault = resolved.parse::<Spec>().unwrap_err();
    assert_eq!(at(place(&fault)), ("--set", 0, 25));
}

#[test]
fn what_is_no_override_is_refused() {
    for (text, what) in [
        ("threads", "`key.path=value`"),
        ("=4", "not a key path"),
        ("inherits=fast-ssd", "cannot set `inherits`"),
        ("flash..read=4", "not a key path"),
        ("flash read=4", "not a key path"),
        ("tenant.1.name=x", "`tenant` is an array of length 1; `1` is not an index of it"),
        ("tenant.first.name=x", "`first` is not an index of it"),
    ] {
        let fault = load("inherits = 'base-ssd'").set(text).expect_err(text);
        assert!(fault.what.contains(what), "{text}: {fault}");
        assert_eq!(place(&fault).source, "--set");
    }
}

#[test]
fn inheritance_that_goes_wrong_is_explained() {
    let circle = fault("inherits = 'loop-a'");
    assert!(
        circle.what.contains("presets/loop-a.toml -> presets/loop-b.toml -> presets/loop-a.toml"),
        "{circle}"
    );
    assert_eq!(at(place(&circle)), ("presets/loop-b.toml", 2, 12));
    let unknown = fault("\ninherits = 'fast-sd'");
    assert_eq!(unknown.nearest.as_deref(), Some("fast-ssd"));
    assert_eq!(at(place(&unknown)), ("mine.toml", 2, 12));
    assert!(fault("inherits = { a = 1 }").what.contains("a list of names"));
    assert!(fault("inherits = './x.toml'").what.contains("only a file may inherit a file"));
    let none = Layers::load("base-sd", &shelf()).unwrap_err();
    assert_eq!(none.nearest.as_deref(), Some("base-ssd"));
    assert!(
        Layers::load("no/such/file.toml", &shelf())
            .unwrap_err()
            .what
            .contains("cannot read `no/such/file.toml`")
    );
}

#[test]
fn files_inherit_files_beside_them_and_presets() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    write("mine.toml", "inherits = 'sub/theirs.toml'\nthreads = 2\n");
    write("sub/theirs.toml", "inherits = '../ours.toml'\nthreads = 3\nflash.geometry.ways = 1\n");
    write("ours.toml", "inherits = 'base-ssd'\nthreads = 5\nflash.geometry.ways = 9\n");
    let path = folder.path().join("mine.toml");
    let mut resolved = Layers::load(path.to_str().unwrap(), &shelf()).unwrap();
    let spec: Spec = resolved.parse().unwrap();
    assert_eq!((spec.threads, spec.flash.geometry.ways, spec.flash.geometry.channels), (Some(2), 1, 8));

    // The cycle is detected although the path is written in two ways.
    write("ours.toml", "inherits = './sub/../mine.toml'\n");
    let circle = Layers::load(path.to_str().unwrap(), &shelf()).unwrap_err();
    assert!(circle.what.contains("circular"), "{circle}");
    write("bytes.toml", "");
    std::fs::write(folder.path().join("bytes.toml"), [b'a', 0xff]).unwrap();
    let path = folder.path().join("bytes.toml");
    let fault = Layers::load(path.to_str().unwrap(), &shelf()).unwrap_err();
    assert!(fault.what.contains("not UTF-8 text (byte 1)"), "{fault}");
}

#[test]
fn text_that_is_not_toml_names_line_and_column() {
    let fault = fault("a = 1\nb = = 2\n");
    assert_eq!((place(&fault).line, place(&fault).text.as_str()), (2, "b = = 2"));
    let fault = self::fault("threads = 1\nthreads = 2\n");
    assert_eq!((place(&fault).line, place(&fault).column), (2, 1), "{fault}");
    let fault = self::fault("threads = 99999999999999999999\n");
    assert!(fault.what.contains("does not fit in 64 bits"), "{fault}");
}

#[test]
fn deep_nesting_is_refused_and_harmless() {
    for text in [
        format!("a = {}1{}", "[".repeat(70), "]".repeat(70)),
        format!("{} = 1", vec!["a"; 70].join(".")),
        format!("{} = 1", vec!["a"; 20_000].join(".")),
        format!(
            "[{}]\n{} = {}1{}",
            vec!["a"; 60].join("."),
            vec!["b"; 60].join("."),
            "[".repeat(60),
            "]".repeat(60)
        ),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
    ] {
        assert!(Layers::from_text("deep.toml", &text, &shelf()).is_err());
    }
    assert!(load("").set(&format!("{}=1", vec!["a"; 20_000].join("."))).is_err());
}

/// Lines that are nearly those of a specification.
fn nearly_toml() -> impl Strategy<Value = String> {
    let key = "(inherits|flash|geometry|gc|victim|threads|tenant|link|[a-z]{1,3}|0)";
    let value = prop_oneof![
        Just("'base-ssd'".to_owned()),
        Just("'loop-a'".to_owned()),
        Just("{ d_choices = { d = 3 } }".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("[{ name = 'x' }, 4]".to_owned()),
        "-?[0-9]{1,22}(\\.[0-9]{1,3})?",
        "'[a-z0-9%é]{0,6}'",
        "\\PC{0,8}",
    ];
    let line = (key, key, value).prop_flat_map(|(a, b, v)| {
        let forms =
            [format!("{a} = {v}"), format!("{a}.{b} = {v}"), format!("[{a}.{b}]"), format!("[[{a}]]"), v];
        proptest::sample::select(forms.to_vec())
    });
    proptest::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

/// Does everything that a caller may do with a text; faults must have a message, and nothing may panic.
fn exercise(text: &str, set: &str) {
    let Ok(mut resolved) = Layers::from_text("any.toml", text, &shelf()) else { return };
    let _ = resolved.parse::<Spec>().map_err(|fault| assert!(!fault.to_string().is_empty()));
    let _ = resolved.set(set);
    let _ = resolved.parse::<Spec>();
    let _ = (resolved.place(set), resolved.diagnose("flash.geometry.ways", "x").to_string());
    // The merged configuration is TOML again, and equal.
    let again = Layers::from_text("again.toml", &resolved.to_toml_string(), &shelf());
    if !resolved.table().contains_key("inherits") {
        let again = again.expect("resolved text is TOML").table();
        assert_eq!(format!("{again:?}"), format!("{:?}", resolved.table()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_panics(text in "\\PC*", set in "\\PC*") {
        exercise(&text, &set);
    }

    #[test]
    fn no_near_specification_panics(text in nearly_toml(), set in "[a-z.0 ]{0,12}=?\\PC{0,6}") {
        exercise(&text, &set);
    }
}

#[test]
fn a_table_inherits_the_same_table_of_another_configuration() {
    let mut resolved = load("inherits = 'base-ssd'\n[flash.geometry]\ninherits = 'fast-ssd'\nways = 2\n");
    let spec: Spec = resolved.parse().unwrap();
    // The table of the other, with all that it inherits itself, but nothing beside it.
    assert_eq!((spec.flash.geometry.channels, spec.flash.geometry.ways), (16, 2));
    let whole: Spec = load("inherits = 'base-ssd'").parse().unwrap();
    assert_eq!(spec.flash.read, whole.flash.read);
    assert_ne!(spec.flash.geometry.channels, whole.flash.geometry.channels);
    let channels = resolved.place("flash.geometry.channels");
    assert_eq!(at(&channels), ("presets/fast-ssd.toml", 4, 12));
}

#[test]
fn a_table_inherits_one_from_another_path_or_file() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.toml");
    std::fs::write(&other, "[a.b]\nchannels = 3\nways = 5\n").unwrap();
    let mine = folder.path().join("mine.toml");
    let text = "inherits = 'base-ssd'\n[flash.geometry]\ninherits = './other.toml:a.b'\nways = 7\n";
    std::fs::write(&mine, text).unwrap();
    let mut resolved =
        Layers::load(&mine.to_string_lossy(), &shelf()).unwrap_or_else(|fault| panic!("{fault}"));
    let spec: Spec = resolved.parse().unwrap();
    assert_eq!((spec.flash.geometry.channels, spec.flash.geometry.ways), (3, 7));
    let mut named = load("inherits = 'base-ssd'\n[flash.geometry]\ninherits = 'fast-ssd.flash.geometry'\n");
    assert_eq!(named.parse::<Spec>().unwrap().flash.geometry.channels, 16);
}

/// An inherited choice replaces the one below it, and a choice in the text itself replaces both.
#[test]
fn choices_of_inherited_tables_rank_between_the_text_and_its_base() {
    let base = "inherits = 'base-ssd'\n[flash.gc]\n";
    let of = |text: &str| load(text).parse::<Spec>().unwrap().flash.gc.victim;
    let inherited = of("inherits = 'base-ssd'");
    assert!(matches!(inherited, VictimPolicy::d_choices(_)));
    assert_eq!(of(&format!("{base}victim = 'greedy'\ninherits = 'fast-ssd'\n")), VictimPolicy::greedy);
    assert_eq!(of(&format!("{base}inherits = 'fast-ssd'\n")), inherited);
}

#[test]
fn a_table_that_cannot_be_inherited_is_told() {
    let of = |line: &str| fault(&format!("inherits = 'base-ssd'\n[flash.geometry]\ninherits = {line}\n"));
    let unknown = of("'fast-sd'");
    assert_eq!((unknown.nearest.as_deref(), at(place(&unknown))), (Some("fast-ssd"), ("mine.toml", 3, 12)));
    let missing = of("'fast-ssd.flash.geometri'");
    assert!(missing.to_string().contains("`fast-ssd` has no table `flash.geometri`"), "{missing}");
    assert_eq!(missing.nearest.as_deref(), Some("flash.geometry"));
    let number = of("3");
    assert!(number.to_string().contains("must be the quoted name"), "{number}");
    let scalar = of("'fast-ssd.flash.read'");
    assert!(scalar.to_string().contains("has no table `flash.read`"), "{scalar}");
}

#[test]
fn a_table_does_not_inherit_from_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    std::fs::write(
        &mine,
        "[flash.geometry]\ninherits = './mine.toml:flash.other'\n[flash.other]\nways = 1\n",
    )
    .unwrap();
    let fault = Layers::load(&mine.to_string_lossy(), &shelf()).expect_err("a circle");
    assert!(fault.to_string().contains("circular inheritance"), "{fault}");
}
