//! Commented text with which `profile init` starts a new profile.

/// A starter profile. The text is valid as it stands; what is commented out shows the rest of the format.
pub fn template(name: &str, extends: &str) -> String {
    let (name, extends) = (serde_json::Value::from(name), serde_json::Value::from(extends));
    format!(
        r#"{{
  // Use it with: nono run --profile {name} -- command
  "name": {name},
  "description": "What this profile is for",

  // Everything of this profile applies first; a list of names works too.
  "extends": {extends},

  "groups": {{
    // Groups of tools, such as "git_config", "rust", "node", "python", "go".
    "include": []
  }},

  "filesystem": {{
    // Directories: allow is read and write. ~, $HOME, $WORKDIR and $XDG_* are expanded.
    // A path that may be missing: {{"path": "~/data", "optional": true}}
    "allow": [],
    "read": []
    // Single files: "allow_file", "read_file", "write_file".
    // Closed even inside what is granted: "deny": ["$WORKDIR/.env"]
    // Protected paths such as ~/.ssh need both a grant and: "bypass_protection": ["~/.ssh"]
  }},

  "workdir": {{
    // none, read, write or readwrite
    "access": "readwrite"
  }},

  "network": {{
    // false opens the network
    "block": true
  }},

  "environment": {{
    // Names, or beginnings such as "MY_*". Secrets pass only by their full name.
    "allow_vars": [],
    "set_vars": {{}}
  }}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_template_is_a_valid_profile() {
        let profile = super::super::parse::parse(&template("mine", "default"), Path::new("t")).unwrap();
        assert_eq!(profile.name.as_deref(), Some("mine"));
        assert_eq!(profile.bases(), ["default"]);
    }
}
