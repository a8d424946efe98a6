//! What a user writes about a stripe.

use config::units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Several drives as one, chunk after chunk in turn: RAID 0. As many bytes of each are used as the smallest has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StripeSpec {
    /// Consecutive bytes on a drive before the next drive's turn: a multiple of 4 KiB.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1GiB", "x-multiple-of" = "4KiB"))]
    pub chunk: Bytes,
    /// Host time of a command before its parts are submitted: finding the drives, splitting. Commands do not wait for each other.
    pub submit: Duration,
}
