//! Texts of the built-in profiles.

/// Name and text of each built-in profile, in the order they are listed.
pub(super) const BUILT_IN: [(&str, &str); 12] = [
    ("default", include_str!("../../data/profiles/default.json")),
    ("claude-code", include_str!("../../data/profiles/claude-code.json")),
    ("codex", include_str!("../../data/profiles/codex.json")),
    ("gemini", include_str!("../../data/profiles/gemini.json")),
    ("opencode", include_str!("../../data/profiles/opencode.json")),
    ("qwen", include_str!("../../data/profiles/qwen.json")),
    ("hermes", include_str!("../../data/profiles/hermes.json")),
    ("aider", include_str!("../../data/profiles/aider.json")),
    ("python-dev", include_str!("../../data/profiles/python-dev.json")),
    ("node-dev", include_str!("../../data/profiles/node-dev.json")),
    ("rust-dev", include_str!("../../data/profiles/rust-dev.json")),
    ("go-dev", include_str!("../../data/profiles/go-dev.json")),
];

pub(super) fn text(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
