//! What a stripe of drives did.

use mem::stripe::{MemberStats, Stripe};
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

/// Accounts of a stripe, and what its shadow has found: name, whether it holds, and what does not.
pub(super) fn checks(name: &str, stripe: &Stripe) -> Vec<(String, bool, String)> {
    let found = stripe.check();
    let agree = format!("commands and parts of the stripe {name} agree");
    let mut checks = vec![(agree, found.is_ok(), found.err().unwrap_or_default())];
    checks.extend(stripe.shadowed().map(|found| {
        let first = found.first.as_deref().unwrap_or_default();
        let detail = format!("{} of {} parts were wrong: {first}", found.wrong, found.compared);
        (format!("bytes of the stripe {name} are on their drives"), found.wrong == 0, detail)
    }));
    checks
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
