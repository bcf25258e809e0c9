//! Tokens recognised by their prefix.

use Of::{Capitals, Dotted, Letters, Words};

use super::steps;

/// Character set of a kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Capital letters and digits.
    Capitals,
    Letters,
    /// Letters, digits, `_` and `-`.
    Words,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
}

/// Kinds of tokens: prefix, characters that follow, and their minimum number.
const TOKENS: &[(&str, Of, usize)] = &[
    ("sk-", Words, 16),
    ("sk_live_", Letters, 8),
    ("sk_test_", Letters, 8),
    ("rk_live_", Letters, 8),
    ("rk_test_", Letters, 8),
    ("whsec_", Letters, 8),
    ("ghp_", Letters, 16),
    ("gho_", Letters, 16),
    ("ghu_", Letters, 16),
    ("ghs_", Letters, 16),
    ("ghr_", Letters, 16),
    ("github_pat_", Words, 16),
    ("glpat-", Words, 12),
    ("glptt-", Words, 12),
    ("gldt-", Words, 12),
    ("glrt-", Words, 12),
    ("glcbt-", Words, 12),
    ("glsoat-", Words, 12),
    ("glsa_", Words, 20),
    ("AKIA", Capitals, 12),
    ("ASIA", Capitals, 12),
    ("LTAI", Letters, 12),
    ("xoxb-", Words, 8),
    ("xoxp-", Words, 8),
    ("xoxa-", Words, 8),
    ("xoxr-", Words, 8),
    ("xoxs-", Words, 8),
    ("xoxc-", Words, 8),
    ("xoxd-", Words, 8),
    ("xoxe-", Words, 8),
    ("xoxe.", Dotted, 8),
    ("xapp-", Words, 8),
    ("AIza", Words, 30),
    ("ya29.", Dotted, 16),
    ("GOCSPX-", Words, 16),
    ("1//0", Words, 30),
    ("npm_", Letters, 30),
    ("pypi-AgE", Words, 16),
    ("hf_", Letters, 20),
    ("gsk_", Letters, 20),
    ("xai-", Letters, 20),
    ("r8_", Letters, 20),
    ("nvapi-", Words, 20),
    ("pplx-", Letters, 20),
    ("SG.", Dotted, 20),
    ("hvs.", Words, 20),
    ("hvb.", Words, 20),
    ("dop_v1_", Letters, 20),
    ("doo_v1_", Letters, 20),
    ("dckr_pat_", Words, 12),
    ("dapi", Letters, 32),
    ("sntrys_", Words, 20),
    ("shpat_", Letters, 16),
    ("shpss_", Letters, 16),
    ("lin_api_", Letters, 16),
    ("figd_", Words, 16),
    ("rubygems_", Letters, 16),
    ("tskey-", Words, 12),
    ("ATATT3", Words, 20),
    ("PMAK-", Words, 20),
    ("NRAK-", Capitals, 20),
    ("sq0atp-", Words, 16),
    ("sq0csp-", Words, 16),
    ("sbp_", Letters, 20),
    ("pul-", Letters, 30),
    ("sha256~", Words, 30),
    ("ntn_", Letters, 30),
    ("AGE-SECRET-KEY-1", Capitals, 16),
];
/// Length from which a text cannot be an ordinary name.
const LOOK: usize = 64;
/// Length of a part from which a text cannot be an ordinary name.
const LONG_PART: usize = 16;

impl Of {
    fn run(self, text: &str) -> usize {
        let is_part = |byte: u8| match self {
            Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Letters => byte.is_ascii_alphanumeric(),
            Words => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        };
        let length = text.bytes().position(|byte| !is_part(byte)).unwrap_or(text.len());
        steps::count(length);
        length
    }
}

/// Whether a word starts here. The last digit of `%3D` and the letter of `\n` do not belong to a word.
pub(super) fn is_start(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[..at];
    let is_escape = |back: usize, sign: u8| before.len() >= back && before[before.len() - back] == sign;
    !before.last().is_some_and(u8::is_ascii_alphanumeric) || is_escape(3, b'%') || is_escape(2, b'\\')
}

pub(super) fn token(text: &str, at: usize) -> Option<(usize, usize)> {
    if !text.as_bytes()[at].is_ascii_alphanumeric() || !is_start(text, at) {
        return None;
    }
    let rest = &text[at..];
    TOKENS.iter().find_map(|(prefix, of, least)| {
        let tail = rest.strip_prefix(prefix)?;
        let seen = of.run(head(tail, LOOK));
        let told = seen >= *least && !(*of == Words && is_ordinary(&tail[..seen]));
        told.then(|| (at, at + prefix.len() + of.run(tail)))
    })
}

/// Whether a text is lower-case words joined by `-` and `_`, such as `sk-learn-and-friends`.
fn is_ordinary(text: &str) -> bool {
    text.len() < LOOK
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'))
        && text.split(['_', '-']).all(|part| part.len() < LONG_PART)
}

/// Beginning of `text`, at most `length` bytes.
pub(super) fn head(text: &str, length: usize) -> &str {
    let mut end = text.len().min(length);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
