//! The files that the rules look at.

use super::mask::Mask;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// Every file of the repository, by path.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

/// One file.
pub(super) struct File {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    /// Length, bytes.
    pub(super) bytes: u64,
    /// `None` where the content is no UTF-8.
    pub(super) text: Option<String>,
}

impl Tree {
    /// Reads the files that git tracks, and the new ones that it does not ignore.
    pub(super) fn read(root: &Path) -> Result<Tree> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git did not start")?;
        if !listing.status.success() {
            bail!("git ls-files failed: {}", String::from_utf8_lossy(&listing.stderr).trim_end());
        }
        let names = String::from_utf8(listing.stdout).context("a file name is no UTF-8")?;
        let mut files = Vec::new();
        for name in names.split_terminator('\0') {
            let path = root.join(name);
            // A file deleted but not yet staged is still listed.
            if path.is_file() {
                let content = std::fs::read(&path).with_context(|| format!("cannot read {name}"))?;
                files.push(File {
                    path: name.into(),
                    bytes: content.len() as u64,
                    text: String::from_utf8(content).ok(),
                });
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Tree { files })
    }

    /// A tree from pairs of path and text.
    #[cfg(test)]
    pub(super) fn planted(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).into(),
            bytes: text.len() as u64,
            text: Some((*text).into()),
        };
        Tree { files: files.iter().map(file).collect() }
    }

    /// Path and text of the text files.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?)))
    }

    /// Path, text and masked text of the Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str, Mask)> {
        self.texts()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| (path, text, Mask::new(text)))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts().find(|(name, _)| *name == path).map(|(_, text)| text)
    }
}
