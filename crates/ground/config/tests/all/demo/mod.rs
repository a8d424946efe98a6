//! A small specification with a policy family and a plain choice, in the shape that a part crate has.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::collections::BTreeMap;

use config::layer::Presets;
use config::schema::{beyond, product};
use config::units::{Bandwidth, Bytes, Duration, Share};
use config::{policies, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Decision of a victim policy, for the demonstration.
pub trait Victim {
    fn describe(&self) -> String;
}

pub struct VictimContext {
    pub blocks: u32,
}

pub mod greedy {
    pub struct Greedy(u32);
    impl Greedy {
        pub fn new(context: &super::VictimContext) -> Greedy {
            Greedy(context.blocks)
        }
    }
    impl super::Victim for Greedy {
        fn describe(&self) -> String {
            format!("greedy over {}", self.0)
        }
    }
}

pub mod d_choices {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Blocks drawn at random for one decision.
        #[schemars(range(min = 1))]
        pub d: u32,
        /// How long a block rests before it may be drawn.
        pub rest: config::units::Duration,
    }
    impl Default for Params {
        fn default() -> Params {
            Params { d: 10, rest: engine::Time::from_ms(3).into() }
        }
    }
    pub struct DChoices(u32, u32);
    impl DChoices {
        pub fn new(params: &Params, context: &super::VictimContext) -> DChoices {
            DChoices(params.d, context.blocks)
        }
    }
    impl super::Victim for DChoices {
        fn describe(&self) -> String {
            format!("best of {} over {}", self.0, self.1)
        }
    }
}

policies! {
    /// Which closed block garbage collection reclaims next.
    pub family VictimPolicy: dyn Victim, context VictimContext {
        /// Fewest valid units first,
        /// ties to the older block.
        ///
        /// The second paragraph is for `explain`.
        default greedy => greedy::Greedy::new,
        /// The best of a few blocks drawn at random.
        ///
        /// Van Houdt, SIGMETRICS 2013.
        d_choices(d_choices::Params) => d_choices::DChoices::new,
    }
}

policies! {
    /// The order in which consecutive pages visit the parallel units.
    #[derive(Copy, Eq)]
    pub family PageLayout: choice {
        /// Channel, way, die, plane.
        default cwdp,
        /// A fixed table; the name is a keyword of Rust.
        r#static,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The flash device.
    pub flash: Flash,
    /// Number of threads that issue requests.
    #[serde(default)]
    pub threads: Option<u16>,
    /// Links by name.
    #[serde(default)]
    pub link: BTreeMap<String, Link>,
    /// Tenants, in order.
    #[serde(default)]
    pub tenant: Vec<Tenant>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    pub geometry: Geometry,
    #[serde(default)]
    pub gc: Gc,
    #[serde(default)]
    pub layout: PageLayout,
    /// Time of one page read.
    pub read: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [product(256, "dies", &["channels", "ways"])]))]
pub struct Geometry {
    /// Channels of the device.
    #[schemars(range(min = 1, max = 64))]
    pub channels: u32,
    /// Ways of a channel.
    #[schemars(range(min = 1, max = 64))]
    pub ways: u32,
    /// Data in a page, without its spare area.
    #[schemars(extend("x-minimum" = "512B", "x-maximum" = "1MiB", "x-power-of-two" = true))]
    pub page: Bytes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gc {
    /// Collection starts when fewer blocks than this share are free.
    pub threshold: Share,
    /// Which block is reclaimed.
    pub victim: VictimPolicy,
    /// A second opinion.
    pub fallback: Option<VictimPolicy>,
}

impl Default for Gc {
    fn default() -> Gc {
        Gc { threshold: Share::percent(5), victim: VictimPolicy::default(), fallback: None }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Data per second.
    pub bandwidth: Bandwidth,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Name of the tenant.
    pub name: String,
    /// Job of the tenant.
    #[serde(default)]
    pub job: Job,
}

/// Ordinary serde enum, beside those of the macro.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Job {
    /// Does nothing.
    #[default]
    Idle,
    /// Reads at random.
    Random {
        /// Requests in flight.
        depth: u32,
    },
}

/// Presets in a map, with the source name `presets/NAME.toml`.
pub struct Shelf(pub BTreeMap<&'static str, &'static str>);

impl Presets for Shelf {
    fn find(&self, name: &str) -> Option<(String, String)> {
        self.0.get(name).map(|text| (format!("presets/{name}.toml"), (*text).to_owned()))
    }
    fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }
}

/// Returns a vendor's device, and a series built on it.
pub fn shelf() -> Shelf {
    Shelf(BTreeMap::from([
        (
            "base-ssd",
            "\
# a device
[flash]
read = '65us'
[flash.geometry]
channels = 8
ways = 4
page = '16KiB'
[flash.gc]
threshold = '7%'
victim = { d_choices = { d = 30 } }
[[tenant]]
name = 'first'
",
        ),
        (
            "fast-ssd",
            "\
inherits = 'base-ssd'
flash.read = '20us'
[flash.geometry]
channels = 16
",
        ),
        ("loop-a", "inherits = 'loop-b'"),
        ("loop-b", "x = 1\ninherits = 'loop-a'"),
    ]))
}

// Limits are declared at the fields of a specification's types; the schema has them, and values beyond them are
// reported.

const GOOD: &str = "\
flash = { read = '65us', geometry = { channels = 8, ways = 4, page = '16KiB' } }
link.a.bandwidth = '1GB/s'
tenant = [{ name = 'first' }]
";

/// Returns the errors of the good values with one changed.
fn told(change: &str) -> Vec<(String, String)> {
    let mut table: toml::Table = GOOD.parse().unwrap();
    let (path, value) = change.split_once('=').unwrap_or(("threads", "1"));
    let names: Vec<&str> = path.split('.').collect();
    let (last, front) = names.split_last().unwrap();
    let mut at = &mut table;
    for name in front {
        at = at.entry(*name).or_insert(toml::Table::new().into()).as_table_mut().unwrap();
    }
    let value: toml::Table = format!("it = {value}").parse().unwrap();
    at.insert((*last).to_owned(), value["it"].clone());
    let faults = beyond(&schema::of::<Spec>(), &table);
    faults.into_iter().map(|fault| (fault.key, fault.what)).collect()
}

#[test]
fn values_within_their_limits_are_left_alone() {
    for good in ["", "flash.geometry.channels=64", "flash.read='1h'", "flash.geometry.page='1MiB'"] {
        assert_eq!(told(good), [], "{good}");
    }
    // A value of the wrong kind is refused elsewhere.
    for other in ["flash.geometry.channels='many'", "flash.read=7", "flash.read='7GB/s'", "flash=1"] {
        assert_eq!(told(other), [], "{other}");
    }
}

#[test]
fn values_beyond_their_limits_are_told_at_their_key() {
    for (change, what) in [
        ("flash.geometry.channels=65", "65 is out of range; allowed: 1 to 64"),
        ("flash.geometry.ways=-1", "-1 is out of range; allowed: 1 to 64"),
        ("flash.geometry.ways=0", "`ways` is 0, but must be at least 1; allowed: 1 to 64"),
        ("flash.geometry.page='3KiB'", "3KiB is not a power of two"),
        ("flash.geometry.page='2MiB'", "2MiB is too large to simulate; the maximum is 1MiB"),
        ("flash.geometry.page='256B'", "256B is too small; the minimum is 512B"),
        ("flash.geometry.page='0B'", "`page` is 0, but must be at least 512B"),
        ("flash.read='2h'", "7200s is too long to simulate: the clock ends at 213 days; the maximum is 1h"),
        ("link.a.bandwidth='1kB/s'", "1kB/s is too slow to simulate; the minimum is 1MB/s"),
        ("flash.gc.victim.d_choices.d=0", "`d` is 0, but must be at least 1; allowed: 1 to 4294967295"),
    ] {
        let (key, _) = change.split_once('=').unwrap();
        assert_eq!(told(change), [(key.to_owned(), what.to_owned())], "{change}");
    }
}

/// A product is reported at its table, and not if one of its numbers is already wrong.
#[test]
fn products_are_told_at_their_table() {
    let said = "320 dies in all; at most 256 can be simulated".to_owned();
    assert_eq!(told("flash.geometry.ways=40"), [("flash.geometry".to_owned(), said)]);
    assert_eq!(told("flash.geometry.ways=32"), []);
    assert_eq!(told("flash.geometry.ways=70").len(), 1);
}

#[test]
fn the_schema_has_the_limits() {
    let geometry = &schema::of::<Spec>()["$defs"]["Geometry"];
    let channels = &geometry["properties"]["channels"];
    assert_eq!((channels["minimum"].as_u64(), channels["maximum"].as_u64()), (Some(1), Some(64)));
    assert_eq!(geometry["properties"]["page"]["x-maximum"], "1MiB");
    assert_eq!(geometry["x-products"][0]["maximum"], 256);
}
