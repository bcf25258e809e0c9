//! The flags, as they are typed.

use super::world::World;

fn nono(args: &[&str], env: &[(&str, &str)]) -> (i32, String, String) {
    let world = World::new();
    world.file(
        "state/config.toml",
        "[credentials.build]\nhost = \"build.example.org\"\nheader = \"X-B\"\n",
        0o600,
    );
    let output = world.command("nono").args(args).envs(env.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn all_or_nothing_leaves_nothing_to_choose() {
    for whole in ["--allow-net", "--block-net"] {
        let (code, _, said) = nono(&["run", whole, "--allow-domain", "a.org", "--", "true"], &[]);
        assert!(code == 2 && said.contains(&format!("drop {whole}")), "{code} {said}");
        let (code, _, said) = nono(&["run", whole, "--", "true"], &[("NONO_ALLOW_DOMAIN", "a.org")]);
        assert!(code == 2 && said.contains("NONO_ALLOW_DOMAIN"), "{code} {said}");
    }
}

#[test]
fn a_filter_needs_a_supervisor() {
    for flag in [["--allow-domain", "a.org"], ["--credential", "openai"], ["--upstream-proxy", "p:1"]] {
        let (code, _, said) = nono(&["wrap", flag[0], flag[1], "--", "true"], &[]);
        assert!(code == 2 && said.contains(&format!("{} needs a supervisor", flag[0])), "{code} {said}");
        let (code, _, said) = nono(&["run", "--monitor", flag[0], flag[1], "--", "true"], &[]);
        assert!(code == 2 && said.contains("--monitor confines it too"), "{code} {said}");
    }
    // A variable that only says how is no reason to refuse what filters nothing.
    let (code, _, said) = nono(&["wrap", "--", "true"], &[("NONO_UPSTREAM_PROXY", "p:1")]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn hosts_are_shown_with_who_asked_for_them() {
    let args = [
        "run",
        "--dry-run",
        "--allow-domain",
        "A.org,*.b.org:443",
        "--credential",
        "build=env:X",
        "--",
        "true",
    ];
    let (code, shown, said) = nono(&args, &[]);
    assert_eq!(code, 0, "{said}");
    for host in ["a.org", "*.b.org:443", "build.example.org:443"] {
        assert!(shown.contains(host), "{host}: {shown}");
    }
}

/// The command runs under a process that was started with nono's own arguments.
#[test]
fn what_was_typed_is_hidden_from_the_command() {
    let look = ["--", "sh", "-c", "cat /proc/1/cmdline /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"];
    let typed: [&[&str]; 2] = [
        &["--upstream-proxy", "http://bob:hunter2pw@127.0.0.1:3128", "--allow-domain", "a.org"],
        &["--credential", "build=cmd:printf hunter2pw"],
    ];
    for flags in typed {
        let args: Vec<&str> = ["run"].iter().chain(flags).chain(&look).copied().collect();
        let (code, shown, said) = nono(&args, &[]);
        assert_eq!(code, 0, "{said}");
        assert!(shown.contains("nono run [hidden] -- sh -c"), "what it sees is there at all: {shown}");
        assert!(!shown.contains("hunter2pw"), "{shown}");
    }
    let plain: Vec<&str> = ["run", "--name", "hunter2pw"].iter().chain(&look).copied().collect();
    assert!(nono(&plain, &[]).1.contains("hunter2pw"), "without a reason to hide, it would be seen");
}

#[test]
fn what_is_wrong_is_said_without_the_secret() {
    for (args, expected) in [
        (["--credential", "openai=hunter2"], "env:VAR"),
        (["--credential", "hunter2.x"], "needs a name"),
        (["--credential", "opnai=env:X"], "anthropic, build, cerebras"),
        (["--upstream-proxy", "socks5://u:hunter2@p:1"], "only http://"),
        (["--upstream-proxy", "http://u:hunter2@p"], "HOST:PORT"),
        (["--allow-domain", "0x7f.1"], "four decimal numbers"),
    ] {
        let (code, _, said) = nono(&["run", args[0], args[1], "--", "true"], &[]);
        assert!(code == 2 && said.contains(expected) && !said.contains("hunter2"), "{args:?}: {code} {said}");
    }
    let (code, _, said) = nono(&["run", "--", "true"], &[("NONO_UPSTREAM_PROXY", "http://u:hunter2@p")]);
    assert!(code == 2 && said.contains("NONO_UPSTREAM_PROXY") && !said.contains("hunter2"), "{code} {said}");
}
