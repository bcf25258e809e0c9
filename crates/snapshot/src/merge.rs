//! Three-way merge of texts, with labelled conflict markers.

use diffy::{IncompleteHunkStyle, MergeOptions};

/// Result of a three-way merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    pub bytes: Vec<u8>,
    pub clean: bool,
}

/// Labels of the three sides in conflict markers.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    pub now: &'a str,
    pub base: &'a str,
    pub target: &'a str,
}

/// Length of conflict markers in the result, as in git.
const LENGTH: usize = 7;
/// Marker lengths during the merge: one that no line of the texts has, so that no line can be taken for a marker.
const LONGER: std::ops::RangeInclusive<usize> = LENGTH + 1..=64;
const MARKS: &[u8] = b"<|=>";

/// Merge the changes from `base` to `now` and to `target`. `None` if the texts have marker-like lines of every length.
pub fn merge(base: &[u8], now: &[u8], target: &[u8], labels: &Labels<'_>) -> Option<Merged> {
    let taken: Vec<usize> =
        [base, now, target].iter().flat_map(|text| lines(text)).filter_map(marks).collect();
    let length = LONGER.into_iter().find(|length| !taken.contains(length))?;
    let mut options = MergeOptions::new();
    options.set_conflict_marker_length(length).set_incomplete_hunk_style(IncompleteHunkStyle::Git);
    Some(match options.merge_bytes(base, now, target) {
        Ok(bytes) => Merged { bytes, clean: true },
        Err(bytes) => Merged { bytes: relabel(&bytes, length, labels), clean: false },
    })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Number of equal marker characters at a line's start, if it could be a marker.
fn marks(line: &[u8]) -> Option<usize> {
    let first = line.first().filter(|first| MARKS.contains(first))?;
    Some(line.iter().take_while(|byte| *byte == first).count()).filter(|count| LONGER.contains(count))
}

fn relabel(merged: &[u8], length: usize, labels: &Labels<'_>) -> Vec<u8> {
    let mut all = Vec::with_capacity(merged.len());
    for line in lines(merged) {
        if marks(line) != Some(length) {
            all.extend_from_slice(line);
            continue;
        }
        let label = match line[0] {
            b'<' => labels.now,
            b'|' => labels.base,
            b'>' => labels.target,
            _ => "",
        };
        all.extend_from_slice(&line[..LENGTH]);
        if !label.is_empty() {
            all.push(b' ');
            all.extend_from_slice(label.as_bytes());
        }
        all.push(b'\n');
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels<'_> = Labels { now: "now", base: "what was left", target: "snapshot 0" };

    fn merged(base: &str, now: &str, target: &str) -> (String, bool) {
        let merged = merge(base.as_bytes(), now.as_bytes(), target.as_bytes(), &LABELS).unwrap();
        (String::from_utf8(merged.bytes).unwrap(), merged.clean)
    }

    #[test]
    fn each_side_has_its_name() {
        let text = "<<<<<<< now\nb\n||||||| what was left\na\n=======\nc\n>>>>>>> snapshot 0\n";
        assert_eq!(merged("a\n", "b\n", "c\n"), (text.to_owned(), false));
        // Without a final line end, a marker still has a line of its own.
        assert_eq!(merged("a", "b", "c"), (text.to_owned(), false));
        assert_eq!(merged("a\n", "b\n", "a\n"), ("b\n".to_owned(), true));
    }

    #[test]
    fn lines_like_markers_stay_as_they_are() {
        let like = "<<<<<<< ours\n<<<<<<<< ours\n========\n>>>>>>>>> theirs\n";
        let side = |line: &str| format!("{like}{line}\n");
        let (text, clean) = merged(&side("a"), &side("b"), &side("c"));
        let tail = "<<<<<<< now\nb\n||||||| what was left\na\n=======\nc\n>>>>>>> snapshot 0\n";
        assert_eq!((text, clean), (format!("{like}{tail}"), false));
        let full: String = LONGER.map(|length| "=".repeat(length) + "\n").collect();
        assert!(merge(full.as_bytes(), b"", b"a", &LABELS).is_none());
    }
}
