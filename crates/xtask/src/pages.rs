//! Checks of the documents: every relative link and anchor leads somewhere, every page is in the book's summary, the two
//! long pages keep to their size, and every path below `crates/` that a page names exists.
//!
//! Not a Markdown parser: it knows fenced blocks, code spans, headings and inline links, which is all the documents use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Pages outside of the book.
const ROOT_PAGES: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"];
const BOOK: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";
/// Largest sizes in bytes.
const SIZES: [(&str, usize); 2] = [("README.md", 10 << 10), ("ARCHITECTURE.md", 20 << 10)];
/// Start of the paths in code spans that have to exist.
const CHECKED: &str = "crates/";

/// List everything that is wrong, one line each; empty is good.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let pages = read(root)?;
    let mut problems = Vec::new();
    for (path, page) in &pages {
        problems.extend(page.links.iter().filter_map(|link| broken(root, &pages, path, link)));
        let missing = page.paths.iter().filter(|named| !exists(root, named));
        problems.extend(missing.map(|named| format!("{}: {named} does not exist", path.display())));
    }
    problems.extend(summary_problems(&pages));
    problems.extend(size_problems(&pages));
    Ok(problems)
}

/// Content of a page that can be checked.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    bytes: usize,
    links: Vec<String>,
    anchors: BTreeSet<String>,
    /// Paths below `crates/` in code spans, braces expanded.
    paths: BTreeSet<String>,
}

type Pages = BTreeMap<PathBuf, Page>;

fn read(root: &Path) -> io::Result<Pages> {
    let mut files: Vec<PathBuf> = ROOT_PAGES.iter().map(PathBuf::from).collect();
    collect(root, Path::new(BOOK), &mut files)?;
    let parsed =
        files.into_iter().map(|file| Ok((file.clone(), parse(&fs::read_to_string(root.join(file))?))));
    parsed.collect()
}

/// Add all Markdown files below `dir`, relative to `root`.
fn collect(root: &Path, dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(dir))? {
        let entry = entry?;
        let path = dir.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    Ok(())
}

fn parse(text: &str) -> Page {
    let prose = without_blocks(text);
    let (plain, spans) = split_spans(&prose);
    Page {
        bytes: text.len(),
        links: links(&plain),
        anchors: anchors(&prose),
        paths: spans.iter().flat_map(|span| checked_paths(span)).collect(),
    }
}

/// The text with fenced blocks blanked; line numbers stay.
fn without_blocks(text: &str) -> String {
    let mut fence: Option<String> = None;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let start = line.trim_start();
        let ticks: String = start.chars().take_while(|character| *character == '`').collect();
        match &fence {
            Some(open) if start.trim_end() == open => fence = None,
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => out.push_str(line),
            Some(_) => {}
        }
        out.push('\n');
    }
    out
}

/// The text with the content of code spans blanked, and that content. A span ends with its paragraph at the latest.
fn split_spans(text: &str) -> (String, Vec<String>) {
    let (mut plain, mut spans) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let ticks = &rest[..rest.len() - rest.trim_start_matches('`').len()];
        let after = &rest[ticks.len()..];
        let paragraph = after.find("\n\n").map_or(after, |end| &after[..end]);
        plain.push_str(ticks);
        rest = after;
        if let Some(end) = span_end(paragraph, ticks.len()) {
            spans.push(after[..end].replace('\n', " "));
            plain.push_str(ticks);
            rest = &after[end + ticks.len()..];
        }
    }
    plain.push_str(rest);
    (plain, spans)
}

/// Position of the next run of exactly `ticks` backticks.
fn span_end(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let length = text[start..].len() - text[start..].trim_start_matches('`').len();
        if length == ticks {
            return Some(start);
        }
        at = start + length;
    }
    None
}

/// Targets of inline links and images.
fn links(plain: &str) -> Vec<String> {
    let targets = plain.match_indices("](").filter_map(|(at, mark)| {
        let rest = &plain[at + mark.len()..];
        rest.find(')').map(|end| rest[..end].to_owned())
    });
    targets.collect()
}

/// Anchors of all headings, as GitHub and mdBook name them.
fn anchors(prose: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let headings =
        prose.lines().filter(|line| line.trim_start_matches('#').starts_with(' ') && line.starts_with('#'));
    for heading in headings {
        let name = anchor(heading.trim_start_matches('#').trim());
        let repeated = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(repeated).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ if character.is_alphanumeric() => Some(character),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// Paths that a code span names and that have to exist.
fn checked_paths(span: &str) -> Vec<String> {
    let word = span.split_whitespace().next().unwrap_or_default();
    if !word.starts_with(CHECKED) || word.contains(['<', '…']) {
        return Vec::new();
    }
    expanded(word.trim_end_matches(['.', ',', ':']))
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    choices.split(',').flat_map(|choice| expanded(&format!("{before}{choice}{after}"))).collect()
}

/// Whether a path exists; a `*` stands for any part of one name.
fn exists(root: &Path, named: &str) -> bool {
    let mut at = root.to_owned();
    for part in named.split('/').filter(|part| !part.is_empty()) {
        let Some((start, end)) = part.split_once('*') else {
            at.push(part);
            continue;
        };
        let mut names = fs::read_dir(&at).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let fits = |name: &std::ffi::OsString| {
            name.to_str().is_some_and(|name| name.starts_with(start) && name.ends_with(end))
        };
        let Some(name) = names.find(fits) else { return false };
        at.push(name);
    }
    at.exists()
}

/// Description of a link that leads nowhere.
fn broken(root: &Path, pages: &Pages, from: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let wrong = |why: &str| Some(format!("{}: the link {link} {why}", from.display()));
    let target = if path.is_empty() { Some(from.to_owned()) } else { joined(from, path) };
    let Some(target) = target else { return wrong("leaves the repository") };
    if !root.join(&target).exists() {
        return wrong("leads to no file");
    }
    let anchor = anchor?;
    match pages.get(&target) {
        Some(page) if page.anchors.contains(anchor) => None,
        Some(_) => wrong("leads to no heading"),
        None => wrong("names a heading of a file that is not checked"),
    }
}

/// A relative link from a page, as a path from the root of the repository; `None` if it leaves the repository.
fn joined(from: &Path, link: &str) -> Option<PathBuf> {
    let mut path = from.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir if path.pop() => {}
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Pages of the book that the summary lacks, and pages that it lists twice.
fn summary_problems(pages: &Pages) -> Vec<String> {
    let summary = Path::new(SUMMARY);
    let links = pages.get(summary).map_or(&[][..], |page| &page.links);
    let listed: Vec<PathBuf> = links.iter().filter_map(|link| joined(summary, link)).collect();
    let in_book = pages.keys().filter(|path| path.starts_with(BOOK) && *path != summary);
    let missing = in_book.filter(|path| !listed.contains(path));
    let mut problems: Vec<String> =
        missing.map(|path| format!("{} is not in {SUMMARY}", path.display())).collect();
    let mut seen = BTreeSet::new();
    let twice = listed.iter().filter(|path| !seen.insert(*path));
    problems.extend(twice.map(|path| format!("{SUMMARY} lists {} twice", path.display())));
    problems
}

fn size_problems(pages: &Pages) -> Vec<String> {
    let too_long = SIZES.iter().filter_map(|(name, most)| {
        let bytes = pages.get(Path::new(name))?.bytes;
        (bytes > *most).then(|| format!("{name} has {bytes} bytes, {most} is the limit: move text to {BOOK}"))
    });
    too_long.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let page = parse("[a](x.md) and `[b](y.md)`, [`c`](z.md#d) ![p](q.svg)\n```\n[e](f.md)\n```\n");
        assert_eq!(page.links, ["x.md", "z.md#d", "q.svg"]);
    }

    #[test]
    fn a_code_span_ends_with_its_paragraph() {
        let page = parse("an odd ` here\n\n[a](x.md) and `git\nstatus` and [b](y.md)\n");
        assert_eq!(page.links, ["x.md", "y.md"]);
    }

    #[test]
    fn headings_become_anchors() {
        let text = "# A Title\n## `[rollback]`\n## `.nono/profile.json` of a project\n```sh\n# no heading\n```\n## Twice\n## Twice\n";
        let expected = ["a-title", "nonoprofilejson-of-a-project", "rollback", "twice", "twice-1"];
        assert_eq!(parse(text).anchors, expected.map(str::to_owned).into());
    }

    #[test]
    fn paths_in_code_spans_are_expanded() {
        let page =
            parse("`crates/a/{b,c}.rs`, `crates/x/*.json`, `crates/<name>/y`, `a/crates/z`, crates/plain\n");
        assert_eq!(
            page.paths,
            ["crates/a/b.rs", "crates/a/c.rs", "crates/x/*.json"].map(str::to_owned).into()
        );
        let root = crate::root();
        assert!(exists(&root, "crates/xtask/src/p*.rs") && exists(&root, "crates/xtask/src"));
        assert!(!exists(&root, "crates/xtask/src/absent*.rs") && !exists(&root, "crates/absent/x"));
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let root = crate::root();
        let pages: Pages = [
            (
                "README.md",
                "# Here\n[a](#here) [b](#gone) [c](docs/a.md#there) [d](docs/gone.md) [e](https://a.b/c)\n",
            ),
            ("docs/a.md", "## There\n[f](../README.md#here) [g](../../outside.md) [h](/README.md)\n"),
        ]
        .map(|(path, text)| (PathBuf::from(path), parse(text)))
        .into();
        let found = |path: &str, link| broken(&root, &pages, Path::new(path), link).is_some();
        assert!(!found("README.md", "#here") && found("README.md", "#gone"));
        assert!(found("README.md", "docs/gone.md") && !found("README.md", "https://a.b/c"));
        assert!(!found("docs/a.md", "../README.md#here"));
        assert!(found("docs/a.md", "../../outside.md") && found("docs/a.md", "/README.md"));
    }

    #[test]
    fn the_summary_lists_every_page_once() {
        let pages: Pages = [
            ("docs/SUMMARY.md", "- [A](a.md)\n- [A again](a.md)\n"),
            ("docs/a.md", ""),
            ("docs/deep/b.md", ""),
            ("README.md", ""),
        ]
        .map(|(path, text)| (PathBuf::from(path), parse(text)))
        .into();
        let expected = ["docs/deep/b.md is not in docs/SUMMARY.md", "docs/SUMMARY.md lists docs/a.md twice"];
        assert_eq!(summary_problems(&pages), expected);
    }

    #[test]
    fn long_pages_are_named() {
        let pages: Pages =
            [("README.md", "x".repeat((10 << 10) + 1)), ("ARCHITECTURE.md", "x".repeat(20 << 10))]
                .map(|(path, text)| (PathBuf::from(path), parse(&text)))
                .into();
        let problems = size_problems(&pages);
        assert!(problems.len() == 1 && problems[0].starts_with("README.md has 10241 bytes"), "{problems:?}");
    }

    #[test]
    fn the_documents_hold_together() {
        let problems = check(&crate::root()).unwrap();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}
