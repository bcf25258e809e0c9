//! Hermes' `config.yaml`.

use super::*;

const YAML: [&str; 7] = [
    "# my settings\nmodel:\n  default: x # this one\n",
    "model: x\nhooks: {}\n# the end\n",
    "hooks:\nmodel: x\n",
    "hooks: # mine\n  pre_tool_call:\n    # look first\n    - matcher: terminal\n      command: ~/look.sh\n\n  output_spill:\n    max: 3\n\n# after\nmodel: x\n",
    "hooks:\n    post_tool_call: []\n    pre_llm_call:\n    - command: 'a b'\n      timeout: 3\nmodel: x",
    "---\nmodel: x\r\nhooks:\r\n  on_session_start:\r\n  - command: x\r\n",
    "text: |\n  hooks:\n  - no\nlist:\n- a\n- b\n",
];

#[test]
fn hermes_settings_keep_their_comments() {
    for text in YAML {
        let desk = Desk::new(agent("hermes"));
        let file = desk.put(".hermes/config.yaml", text);
        let before = desk.tree();
        desk.install();
        let with = fs::read_to_string(&file).unwrap();
        assert_eq!(desk.state(), HookState::Installed, "{with}");
        for line in text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.contains("{}") && !line.contains("[]"))
        {
            assert!(line == "hooks: # mine" || with.contains(line), "{line} in {with}");
        }
        assert!(plan_install(&desk.request).unwrap().changes.is_empty(), "{with}");
        desk.remove();
        assert_eq!(desk.tree(), before, "{with}");
        // The same without the record.
        desk.install();
        fs::write(&file, format!("{with}\n# later\n")).unwrap();
        desk.remove();
        let left = fs::read_to_string(&file).unwrap();
        assert!(!left.contains(" hook hermes") && left.contains("# later"), "{left}");
        assert_eq!(left.contains("look.sh"), text.contains("look.sh"));
    }
}

#[test]
fn hermes_settings_that_are_not_understood_are_refused() {
    for (text, line) in [
        ("{model: x}\n", 1),
        ("a: 1\nhooks: {pre_tool_call: []}\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("hooks: {}\nhooks: {}\n", 2),
        ("hooks: &a\n  pre_tool_call: []\n", 1),
        // Adding to it would make it invalid YAML.
        (" a: 1\n b: 2\n", 2),
    ] {
        let desk = Desk::new(agent("hermes"));
        desk.put(".hermes/config.yaml", text);
        let before = desk.tree();
        let error = plan_install(&desk.request).unwrap_err();
        assert!(matches!(&error, InstallError::Yaml { line: at, .. } if *at == line), "{text}: {error}");
        assert!(error.hint().unwrap().contains("hook hermes pre_tool_call"));
        assert_eq!(desk.tree(), before);
    }
}

#[test]
fn hermes_settings_that_are_no_yaml_are_refused() {
    for text in [
        "a: [1, 2\nb: \"x",
        "a: 1\n b: 2",
        "model: \"abc",
        "- a\n- b\n",
        "text\n",
        "~\n",
        "--- \"\"\n",
        "a: *nobody\n",
        "hooks:\n\tpre_tool_call: []\n",
        "hooks:\n    a:\n  b:\n",
    ] {
        let desk = Desk::new(agent("hermes"));
        desk.put(".hermes/config.yaml", text);
        let before = desk.tree();
        let error = plan_install(&desk.request).unwrap_err();
        let InstallError::Malformed { line, column, .. } = &error else { panic!("{text}: {error}") };
        assert!((1..=text.lines().count() + 1).contains(line) && *column > 0, "{text}: {error}");
        assert!(matches!(desk.state(), HookState::Broken { .. }), "{text}");
        assert_eq!(desk.tree(), before);
    }
    for nothing in ["", "\n# nothing yet\n", "---\n", "\u{feff}# mark\n"] {
        let desk = Desk::new(agent("hermes"));
        desk.put(".hermes/config.yaml", nothing);
        desk.install();
        assert_eq!(desk.state(), HookState::Installed, "{nothing:?}");
    }
}

/// Hermes rewrites its file when a setting is changed by command: without comments, long texts broken into several
/// lines.
#[test]
fn hermes_file_that_was_written_anew() {
    let desk = Desk::new(agent("hermes"));
    desk.install();
    let text = format!(
        "hooks:\n  pre_tool_call:\n  - command: {}/nono hook hermes\n      pre_tool_call\n    matcher: terminal\nmodel: x\n",
        "/long/path".repeat(12)
    );
    fs::write(desk.path(".hermes/config.yaml"), text).unwrap();
    desk.remove();
    assert_eq!(desk.get(".hermes/config.yaml"), "hooks: {}\nmodel: x\n");
}
