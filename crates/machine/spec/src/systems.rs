//! Shipped systems and their specs.

use config::Presets;

/// Name and spec of every shipped system. A new system is a folder and a line.
pub const SYSTEMS: &[(&str, &str)] = &[
    ("860-pro", include_str!("../../../../systems/860-pro/spec.toml")),
    ("9100-max", include_str!("../../../../systems/9100-max/spec.toml")),
    ("980-pro", include_str!("../../../../systems/980-pro/spec.toml")),
    ("astriflash", include_str!("../../../../systems/astriflash/spec.toml")),
    ("astriflash-ideal", include_str!("../../../../systems/astriflash-ideal/spec.toml")),
    ("astriflash-mqms", include_str!("../../../../systems/astriflash-mqms/spec.toml")),
    ("astriflash-nodp", include_str!("../../../../systems/astriflash-nodp/spec.toml")),
    ("astriflash-nops", include_str!("../../../../systems/astriflash-nops/spec.toml")),
    ("d16", include_str!("../../../../systems/d16/spec.toml")),
    ("d3-s4610", include_str!("../../../../systems/d3-s4610/spec.toml")),
    ("dram-only", include_str!("../../../../systems/dram-only/spec.toml")),
    ("evo-2tb", include_str!("../../../../systems/evo-2tb/spec.toml")),
    ("fastdrain", include_str!("../../../../systems/fastdrain/spec.toml")),
    ("fastdrain-buf", include_str!("../../../../systems/fastdrain-buf/spec.toml")),
    ("fastdrain-ftl", include_str!("../../../../systems/fastdrain-ftl/spec.toml")),
    ("fastdrain-lsb", include_str!("../../../../systems/fastdrain-lsb/spec.toml")),
    ("fastdrain-oracle", include_str!("../../../../systems/fastdrain-oracle/spec.toml")),
    ("fastdrain-vanilla", include_str!("../../../../systems/fastdrain-vanilla/spec.toml")),
    ("fastdrain-writepoint", include_str!("../../../../systems/fastdrain-writepoint/spec.toml")),
    ("flash-sync", include_str!("../../../../systems/flash-sync/spec.toml")),
    ("flashabacus", include_str!("../../../../systems/flashabacus/spec.toml")),
    ("flashabacus-inter-dy", include_str!("../../../../systems/flashabacus-inter-dy/spec.toml")),
    ("flashabacus-inter-st", include_str!("../../../../systems/flashabacus-inter-st/spec.toml")),
    ("flashabacus-intra-io", include_str!("../../../../systems/flashabacus-intra-io/spec.toml")),
    ("flashabacus-simd", include_str!("../../../../systems/flashabacus-simd/spec.toml")),
    ("gpu-hbm", include_str!("../../../../systems/gpu-hbm/spec.toml")),
    ("gtx580", include_str!("../../../../systems/gtx580/spec.toml")),
    ("hetero", include_str!("../../../../systems/hetero/spec.toml")),
    ("hybridgpu", include_str!("../../../../systems/hybridgpu/spec.toml")),
    ("ideal", include_str!("../../../../systems/ideal/spec.toml")),
    ("mqms", include_str!("../../../../systems/mqms/spec.toml")),
    ("mqms-server", include_str!("../../../../systems/mqms-server/spec.toml")),
    ("mqsim-default", include_str!("../../../../systems/mqsim-default/spec.toml")),
    ("mqsim-macsim", include_str!("../../../../systems/mqsim-macsim/spec.toml")),
    ("optane", include_str!("../../../../systems/optane/spec.toml")),
    ("os-swap", include_str!("../../../../systems/os-swap/spec.toml")),
    ("p3700", include_str!("../../../../systems/p3700/spec.toml")),
    ("p5316", include_str!("../../../../systems/p5316/spec.toml")),
    ("pm9a3", include_str!("../../../../systems/pm9a3/spec.toml")),
    ("pm9a3x4", include_str!("../../../../systems/pm9a3x4/spec.toml")),
    ("server16", include_str!("../../../../systems/server16/spec.toml")),
    ("ssd256", include_str!("../../../../systems/ssd256/spec.toml")),
    ("z-ssd", include_str!("../../../../systems/z-ssd/spec.toml")),
    ("zn540", include_str!("../../../../systems/zn540/spec.toml")),
    ("zng", include_str!("../../../../systems/zng/spec.toml")),
    ("zng-base", include_str!("../../../../systems/zng-base/spec.toml")),
    ("zng-block", include_str!("../../../../systems/zng-block/spec.toml")),
    ("zng-cached", include_str!("../../../../systems/zng-cached/spec.toml")),
    ("zng-gddr", include_str!("../../../../systems/zng-gddr/spec.toml")),
    ("zng-rdopt", include_str!("../../../../systems/zng-rdopt/spec.toml")),
    ("zng-wropt", include_str!("../../../../systems/zng-wropt/spec.toml")),
];

/// Shipped systems as presets that specs can inherit.
pub struct Shipped;

impl Presets for Shipped {
    fn find(&self, name: &str) -> Option<(String, String)> {
        let (name, text) = SYSTEMS.iter().find(|(n, _)| *n == name)?;
        Some((format!("systems/{name}/spec.toml"), (*text).to_owned()))
    }
    fn names(&self) -> Vec<String> {
        SYSTEMS.iter().map(|(name, _)| (*name).to_owned()).collect()
    }
}
