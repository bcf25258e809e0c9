//! Scan of the command's error output for messages that a sandbox could have caused.
//!
//! The bytes pass through unchanged; only whole lines that contain a known phrase are kept, a bounded number of them.
//! What a line proves is decided elsewhere, against the policy: the child may write whatever it likes.

/// Line of output that names a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub line: String,
    pub about: DenialKind,
}

/// Kind of denial a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialKind {
    Access,
    Network,
    Memory,
    Processes,
    FileSize,
}

const ACCESS: &[&str] = &[
    "Permission denied",
    "permission denied",
    "Operation not permitted",
    "operation not permitted",
    "Read-only file system",
    "read-only file system",
    "PermissionError",
    "EACCES",
    "EPERM",
    "EROFS",
];
const NETWORK: &[&str] = &[
    "Network is unreachable",
    "network is unreachable",
    "Could not resolve",
    "could not resolve",
    "Temporary failure in name resolution",
    "Name or service not known",
    "onnection refused",
    "ouldn't connect to server",
    "ECONNREFUSED",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
];
const MEMORY: &[&str] = &[
    "MemoryError",
    "annot allocate memory",
    "ut of memory",
    "emory exhausted",
    "memory allocation of",
    "std::bad_alloc",
];
const PROCESSES: &[&str] =
    &["Resource temporarily unavailable", "annot fork", "fork failed", "EAGAIN", "can't start new thread"];
const FILE_SIZE: &[&str] = &["File size limit exceeded", "File too large", "EFBIG"];
/// Phrases, in the order they are looked for.
const WORDS: &[(DenialKind, &[&str])] = &[
    (DenialKind::Access, ACCESS),
    (DenialKind::Network, NETWORK),
    (DenialKind::Memory, MEMORY),
    (DenialKind::Processes, PROCESSES),
    (DenialKind::FileSize, FILE_SIZE),
];
const LONGEST_LINE: usize = 4096;
const MOST_COMPLAINTS: usize = 64;

/// Collects complaints from a stream of bytes.
#[derive(Debug, Default)]
pub(crate) struct StderrScan {
    partial: Vec<u8>,
    complaints: Vec<Complaint>,
    in_line: bool,
}

impl StderrScan {
    pub(crate) fn listen(&mut self, bytes: &[u8]) {
        self.in_line = bytes.last().map_or(self.in_line, |byte| *byte != b'\n');
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    /// Whether the output is, or ended, in the middle of a line.
    pub(crate) fn in_line(&self) -> bool {
        self.in_line
    }

    /// Complaints so far, the unfinished last line included.
    pub(crate) fn finish(mut self) -> Vec<Complaint> {
        self.end_line();
        self.complaints
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.partial);
        if self.complaints.len() >= MOST_COMPLAINTS {
            return;
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end();
        let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
        let Some((about, _)) = WORDS.iter().find(|(_, words)| says(words)) else { return };
        let complaint = Complaint { line: line.to_owned(), about: *about };
        if !self.complaints.contains(&complaint) {
            self.complaints.push(complaint);
        }
    }
}

/// Complaints in a text that the caller kept.
pub fn complaints(text: &str) -> Vec<Complaint> {
    let mut scan = StderrScan::default();
    scan.listen(text.as_bytes());
    scan.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(chunks: &[&str]) -> Vec<String> {
        let mut scan = StderrScan::default();
        for chunk in chunks {
            scan.listen(chunk.as_bytes());
        }
        scan.finish().into_iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn lines_are_put_together_across_reads() {
        assert_eq!(heard(&["cat: /x: Permis", "sion denied\nfine\n"]), ["cat: /x: Permission denied"]);
    }

    #[test]
    fn not_found_is_not_a_refusal() {
        assert!(heard(&["cat: /x: No such file or directory\n"]).is_empty());
    }

    #[test]
    fn repeated_and_endless_lines_are_bounded() {
        let many = "a: Permission denied\n".repeat(1000);
        assert_eq!(heard(&[&many]).len(), 1);
        let long = format!("{}Permission denied\n", "x".repeat(100_000));
        assert!(heard(&[&long]).is_empty());
    }
}
