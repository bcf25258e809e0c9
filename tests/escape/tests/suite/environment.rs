//! The environment: secrets and variables that inject code stay outside.

use crate::harness::{attack, check};

const INJECTED: &[&str] = &[
    "SECRET_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "OPENAI_API_KEY",
    "DATABASE_URL",
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "LD_DEBUG_OUTPUT",
    "DYLD_INSERT_LIBRARIES",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_ls%%",
    "PROMPT_COMMAND",
    "IFS",
    "PS4",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_VALUE_0",
    "GIT_PROXY_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "LESSOPEN",
    "MAKEFLAGS",
    "CARGO_REGISTRY_TOKEN",
    "RUSTC_WRAPPER",
];

/// Each variable alone, so that one that is removed does not hide another that is not.
#[test]
fn variables_stay_outside() {
    let attacks: Vec<_> = INJECTED
        .iter()
        .map(|name| {
            let pair: &'static [(&str, &str)] = Box::leak(Box::new([(*name, "/nonexistent/{secret}")]));
            attack("env-leak {terces}").leaks().env(pair)
        })
        .collect();
    check(&attacks);
}
