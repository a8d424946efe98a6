//! Identity of a build: version, commit, and the revision of its results.
//!
//! * Knows the digest of golden documents and key cases, and the commit that a front end has told it.
//! * Does not know how a result comes about.
//! * Read first: this file; then `build.rs`.

use std::process::Command;
use std::sync::OnceLock;

/// Version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Revision of results: a digest of the golden documents and of the key cases. Builds of one revision agree on all of them.
pub const RESULTS: &str = env!("NANDSCAPE_RESULTS");
/// Comparison of results with those of the last release.
pub const CHANGE: &str = env!("NANDSCAPE_CHANGE");

/// Commit of the front end, once it has said so.
static COMMIT: OnceLock<&'static str> = OnceLock::new();

/// Commit that this build was made from; `unknown` outside a checkout.
pub fn commit() -> &'static str {
    COMMIT.get().copied().unwrap_or("unknown")
}

/// Tells the commit. A front end calls it first, with `env!("NANDSCAPE_COMMIT")`; later calls change nothing.
pub fn built_from(commit: &'static str) {
    COMMIT.get_or_init(|| commit);
}

/// For build scripts of front ends: sets `NANDSCAPE_COMMIT` to the commit of the checkout, with `-changed` behind it where
/// tracked files differ from it.
pub fn print_commit() {
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).output().ok().filter(|done| done.status.success())?;
        Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|list| !list.is_empty());
    println!("cargo:rustc-env=NANDSCAPE_COMMIT={commit}{}", if changed { "-changed" } else { "" });
    let folder = git(&["rev-parse", "--absolute-git-dir"]);
    for path in folder.iter().flat_map(|folder| [format!("{folder}/HEAD"), format!("{folder}/logs/HEAD")]) {
        println!("cargo:rerun-if-changed={path}");
    }
}
