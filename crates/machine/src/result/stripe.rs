//! What a stripe of drives did.

use host::stripe::{MemberStats, Stripe};
use schemars::JsonSchema;
use serde::Serialize;

/// One drive of a stripe.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemberResult {
    /// Commands that it was given.
    pub commands: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Several drives as one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StripeResult {
    /// What it is called.
    pub name: String,
    /// Bytes that it has.
    pub capacity_bytes: u64,
    /// Bytes of its drives that no command reaches, because another drive is smaller.
    pub unused_bytes: u64,
    /// Commands that came.
    pub commands: u64,
    /// Commands that the drives were given for them.
    pub parts: u64,
    /// Commands with bytes of more than one chunk.
    pub crossed: u64,
    /// Mean time of a command from the first answer of a drive to the last; null without commands.
    pub straggling_ns: Option<f64>,
    /// The drives, in the order of their chunks.
    pub members: Vec<MemberResult>,
}

impl StripeResult {
    pub(super) fn collect(name: &str, stripe: &Stripe) -> StripeResult {
        let s = &stripe.stats;
        let member = |member: &MemberStats| MemberResult { commands: member.commands, bytes: member.bytes };
        StripeResult {
            name: name.to_owned(),
            capacity_bytes: stripe.capacity(),
            unused_bytes: stripe.unused(),
            commands: s.commands,
            parts: s.parts,
            crossed: s.crossed,
            straggling_ns: (s.commands > 0).then(|| s.straggling.as_ns_f64() / s.commands as f64),
            members: s.members.iter().map(member).collect(),
        }
    }
}
