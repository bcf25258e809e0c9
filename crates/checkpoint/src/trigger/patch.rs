//! The files that a patch in the `*** Begin Patch` format touches. Codex, OpenCode and Hermes (V4A) share it.

use std::collections::HashSet;

const HEADERS: [&str; 4] = ["*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"];
/// Hermes' own header for a move: `*** Move File: old -> new`.
const MOVE: &str = "*** Move File:";

/// Each file once, in the order of the patch. A line of a hunk begins with a blank, `+`, `-` or `@`, so what begins with
/// stars is a header, however the rest of the patch looks.
pub fn paths<'p>(patch: &'p str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    let mut add = |path: &'p str| {
        let path = path.trim();
        if !path.is_empty() && known.insert(path) {
            found.push(path.to_owned());
        }
    };
    for line in patch.lines() {
        // Leading blanks are forgiven by the agents, too; inside a hunk they only cost a path that is not there.
        let line = line.trim_start();
        if let Some(rest) = HEADERS.iter().find_map(|header| line.strip_prefix(header)) {
            add(rest);
        } else if let Some(rest) = line.strip_prefix(MOVE) {
            rest.split("->").for_each(&mut add);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::paths;

    #[test]
    fn every_kind_of_header() {
        let patch = "*** Begin Patch\n*** Add File: new dir/a b.txt\n+x\n*** Update File: src/old.rs\n\
*** Move to: src/new.rs\n@@\n-a\n+b\n*** Delete File: gone\n*** Update File: src/old.rs\n*** Move File: p -> q\n*** End Patch";
        assert_eq!(paths(patch), ["new dir/a b.txt", "src/old.rs", "src/new.rs", "gone", "p", "q"]);
    }

    #[test]
    fn no_patch_has_no_paths() {
        for text in ["", "*** Begin Patch", "*** Add File:", "--- a/x\n+++ b/x", "+*** Add File: x"] {
            assert!(paths(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn line_ends_of_windows() {
        assert_eq!(paths("*** Begin Patch\r\n*** Update File: a.txt\r\n"), ["a.txt"]);
    }
}
