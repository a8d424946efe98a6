//! The part that issues requests and measures them: closed loops, open loops, several sources side by side,
//! each with its target.

pub mod explain;
mod flow;
mod injector;
mod observe;
mod recorded;
mod source;
mod split;
mod targets;

pub use explain::Explain;
pub use flow::FlowStats;
pub use injector::{Event, Injector, Out};
pub use observe::{Explained, Observer, Seen, Waiting};
pub use recorded::Recorded;
pub use source::{Next, Source};
pub use split::Split;
pub use targets::{HostCost, Queues};
