//! `cargo xtask book`: every page of the repository as one searchable book that works offline. Chapters follow the reading order of
//! `docs/index.md`; links to pages stay inside the book, links to code lead to the repository.
//!
//! Rendering takes mdBook, which is built only with the feature `book`; without it the command runs itself again with the feature.

use crate::markdown::{links, resolved};
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Page whose links give the order of the chapters.
const INDEX: &str = "docs/index.md";
/// Folders whose pages stand behind those of the index, with their titles.
const BEHIND: [(&str, &str); 4] =
    [("docs/", "Further pages"), ("docs/adr/", "Decisions"), ("systems/", "Systems"), ("papers/", "Papers")];
/// Pages outside these folders and the root are not chapters.
const FOLDERS: [&str; 3] = ["docs/", "systems/", "papers/"];
/// Code, where it is read.
const REPOSITORY: &str = "https://github.com/nandscape/nandscape/blob/main";

/// Builds the book, and prints its first page; always true.
pub(crate) fn run() -> Result<bool> {
    let html = build()?;
    // The program with mdBook has said so itself.
    if cfg!(feature = "book") {
        println!("{}", html.join("index.html").display());
    }
    Ok(true)
}

/// Builds the book in `target/book`; the folder of its pages.
pub(crate) fn build() -> Result<PathBuf> {
    let folder = workspace::target_directory()?.join("book");
    let html = folder.join("html");
    if !cfg!(feature = "book") {
        let arguments = ["run", "--quiet", "--package", "xtask", "--features", "book", "--", "book"];
        let done = Command::new(env!("CARGO")).args(arguments).current_dir(workspace::root()).status()?;
        return if done.success() { Ok(html) } else { bail!("the book was not built") };
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let source = folder.join("src");
    let chapters = chapters()?;
    for path in &chapters {
        let text = fs::read_to_string(workspace::root().join(path))?;
        write(&source.join(path), &linked(path, &text, &chapters))?;
    }
    for image in tracked()?.iter().filter(|path| path.starts_with("docs/images/")) {
        let to = source.join(image);
        fs::create_dir_all(to.parent().unwrap_or(&source))?;
        fs::copy(workspace::root().join(image), to)?;
    }
    write(&source.join("SUMMARY.md"), &summary(&chapters)?)?;
    write(&folder.join("book.toml"), CONFIGURATION)?;
    render(&folder)?;
    Ok(html)
}

/// mdBook's own configuration.
const CONFIGURATION: &str = "[book]\ntitle = \"nandscape\"\nsrc = \"src\"\n\n[build]\nbuild-dir = \"html\"\n\n\
     [output.html]\nno-section-label = true\n\n[output.html.search]\nlimit-results = 20\n";

#[cfg(feature = "book")]
fn render(folder: &Path) -> Result<()> {
    mdbook_driver::MDBook::load(folder)?.build()
}

#[cfg(not(feature = "book"))]
fn render(_: &Path) -> Result<()> {
    bail!("built without the feature `book`")
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file in a folder")?)?;
    fs::write(path, text)?;
    Ok(())
}

/// Files that git tracks.
fn tracked() -> Result<Vec<String>> {
    let output = Command::new("git").args(["ls-files"]).current_dir(workspace::root()).output()?;
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// Pages of the book: those of the root and of the folders.
fn chapters() -> Result<BTreeSet<String>> {
    let is_page = |path: &String| {
        path.ends_with(".md")
            && (!path.contains('/') || FOLDERS.iter().any(|folder| path.starts_with(folder)))
    };
    Ok(tracked()?.into_iter().filter(is_page).collect())
}

/// A page whose links to code lead to the repository.
fn linked(page: &str, text: &str, chapters: &BTreeSet<String>) -> String {
    let mut out = String::new();
    let mut done = 0;
    for (at, target) in links(text) {
        let path = resolved(page, target.split('#').next().unwrap_or(target));
        if path == page || at < done || chapters.contains(&path) || path.starts_with("docs/images/") {
            continue;
        }
        let _ = write!(out, "{}{REPOSITORY}/{path}", &text[done..at]);
        done = at + target.len();
    }
    out + &text[done..]
}

/// The first heading of a page.
fn title(path: &str) -> Result<String> {
    let text = fs::read_to_string(workspace::root().join(path))?;
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    Ok(heading.unwrap_or(path).replace(['[', ']'], ""))
}

/// mdBook's list of chapters: each page once, where the index names it first.
fn summary(chapters: &BTreeSet<String>) -> Result<String> {
    let mut listed = BTreeSet::new();
    let mut text = String::from("# Summary\n\n");
    let add = |path: &str, text: &mut String, listed: &mut BTreeSet<String>| -> Result<()> {
        if chapters.contains(path) && listed.insert(path.to_owned()) {
            let _ = writeln!(text, "- [{}]({path})", title(path)?);
        }
        Ok(())
    };
    for path in ["README.md", INDEX] {
        add(path, &mut text, &mut listed)?;
    }
    let index = fs::read_to_string(workspace::root().join(INDEX))?;
    for line in index.lines() {
        if let Some(part) = line.strip_prefix("## ") {
            let _ = write!(text, "\n# {part}\n\n");
        }
        for (_, target) in links(line) {
            add(&resolved(INDEX, target), &mut text, &mut listed)?;
        }
    }
    for (folder, name) in BEHIND {
        let _ = write!(text, "\n# {name}\n\n");
        let nested = |path: &&String| folder != "docs/" || !path["docs/".len()..].contains('/');
        for path in chapters.iter().filter(|path| path.starts_with(folder)).filter(nested) {
            add(path, &mut text, &mut listed)?;
        }
    }
    for path in chapters {
        add(path, &mut text, &mut listed)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_stay_and_links_to_code_leave() {
        let chapters = BTreeSet::from(["docs/a.md".to_owned(), "README.md".to_owned()]);
        let text = "[a](a.md#x) [r](../README.md) [c](../crates/x.rs) [w](https://a.b) ![i](images/i.png)";
        let expected = format!(
            "[a](a.md#x) [r](../README.md) [c]({REPOSITORY}/crates/x.rs) [w](https://a.b) ![i](images/i.png)"
        );
        assert_eq!(linked("docs/b.md", text, &chapters), expected);
    }

    #[test]
    fn every_page_is_one_chapter() {
        let chapters = chapters().unwrap();
        let summary = summary(&chapters).unwrap();
        for path in &chapters {
            assert_eq!(summary.matches(&format!("]({path})")).count(), 1, "{path}");
        }
    }
}
