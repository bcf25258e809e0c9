//! `--credential`, end to end: the server gets the secret, and no other process ever has it.

use std::path::Path;
use std::process::Command;

use super::live::{Live, helper, inside};
use super::town::{Ran, Town};

const SECRET: &str = "demo-Secret-7f3a9c51d2";
/// The secret in base64, to look for it in that form, too.
const AS_BASE64: &str = "ZGVtby1TZWNyZXQtN2YzYTljNTFkMg==";

const SERVICE: &str = "[credentials.demo]\nhost = \"allowed.test\"\nheader = \"X-Demo-Token\"\n\
                       env = [\"DEMO_TOKEN\"]\nbase_url_env = \"DEMO_URL\"\n";

fn town() -> Option<Town> {
    let town = Town::new()?;
    town.world.file("state/config.toml", SERVICE, 0o600);
    Some(town)
}

/// nono, believing the town's authority, with the secret in its environment.
fn nono(town: &Town, flags: &[&str], script: &str) -> Command {
    let mut command = town.nono(flags, script);
    command.env("SSL_CERT_FILE", town.world.path("work/ca.pem"));
    command
}

fn with_variable(town: &Town, script: &str) -> Command {
    let mut command = nono(town, &["--credential", "demo"], script);
    command.env("DEMO_TOKEN", SECRET).env("COPY", format!("x {SECRET} y"));
    command
}

/// What the server was shown, request by request.
fn shown(town: &Town) -> Vec<String> {
    let token = |asked: &serde_json::Value| {
        let fields = asked["fields"].as_array()?;
        let field =
            fields.iter().find(|field| field[0].as_str().unwrap().eq_ignore_ascii_case("X-Demo-Token"));
        Some(field.map_or("", |field| field[1].as_str().unwrap()).to_owned())
    };
    town.got().iter().filter_map(token).collect()
}

/// No file below this folder has the secret in it.
#[track_caller]
fn is_clean(folder: &Path) {
    let found = Command::new("grep")
        .args(["-raElsi", &format!("{SECRET}|{AS_BASE64}")])
        .arg(folder)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{}", folder.display());
}

#[track_caller]
fn left_nothing(town: &Town) {
    for folder in ["state", "tmp", "work", "home/.cache"] {
        is_clean(&town.world.path(folder));
    }
}

#[test]
fn the_command_has_a_placeholder_and_the_server_gets_the_secret() {
    let Some(town) = town() else { return };
    let script = "env; cat /proc/self/environ /proc/*/environ /proc/*/cmdline 2>/dev/null; echo
         curl -sS --fail -H \"X-Demo-Token: $DEMO_TOKEN\" https://allowed.test/reflect/body
         curl -sS --fail -H \"X-Demo-Token: $DEMO_TOKEN\" $DEMO_URL/reflect/body
         /usr/bin/python3 -c 'import os, requests
print(requests.get(\"https://allowed.test/reflect/body\", headers={\"X-Demo-Token\": os.environ[\"DEMO_TOKEN\"]}).text)'
         echo asked; read -r _";
    let mut live = Live::start(&mut with_variable(&town, script));
    live.until("asked");
    let processes = inside(&town);
    assert!(!processes.is_empty());
    for process in &processes {
        assert!(!process.holds(SECRET.as_bytes()), "{process:?}");
        for bytes in [&process.line, &process.env] {
            assert!(!String::from_utf8_lossy(bytes).contains(SECRET), "{process:?}");
        }
    }
    // The same look finds it where it is.
    let proxy = helper(&town);
    assert!(proxy.holds(SECRET.as_bytes()));
    for bytes in [&proxy.line, &proxy.env] {
        assert!(!String::from_utf8_lossy(bytes).contains(SECRET), "{proxy:?}");
    }
    live.go();
    let ran = live.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(shown(&town), [SECRET; 3]);
    let events = town.network();
    let used = events.iter().filter(|event| event["credential"] == "demo").count();
    assert_eq!(used, 3, "{events:?}");
    left_nothing(&town);
}

#[test]
fn the_environment_has_only_the_placeholder() {
    let Some(town) = town() else { return };
    let ran = Ran::of(&mut with_variable(&town, "env; cat /proc/self/environ /proc/*/environ 2>/dev/null"));
    assert!(ran.out.contains("\nDEMO_TOKEN=nono-dummy-"), "{ran:?}");
    assert!(ran.out.contains("DEMO_URL=http://127.0.0.1:19080/demo\n"), "{ran:?}");
    assert!(!ran.out.contains(SECRET) && !ran.out.contains("COPY="), "{ran:?}");
}

#[test]
fn a_server_that_repeats_it_does_not_tell_the_command() {
    let Some(town) = town() else { return };
    let script = "for how in header body error redirect gzip reason pieces; do
            for url in https://allowed.test $DEMO_URL; do
                curl -sS -i -H \"X-Demo-Token: $DEMO_TOKEN\" -H 'Accept-Encoding: gzip' $url/reflect/$how; echo
            done
        done
        curl -sSL -H \"X-Demo-Token: $DEMO_TOKEN\" https://allowed.test/reflect/redirect";
    let ran = Ran::of(&mut with_variable(&town, script));
    assert_eq!(shown(&town), [SECRET; 15], "{ran:?}");
    for what in [SECRET, AS_BASE64] {
        assert!(!ran.out.contains(what) && !ran.err.contains(what), "{ran:?}");
    }
    // What came back instead is what the command had sent.
    for expected in
        ["X-Echo: nono-dummy-", "bad token nono-dummy-", "?token=nono-dummy-", "cannot be checked"]
    {
        assert!(ran.out.contains(expected), "{expected}: {ran:?}");
    }
    // The redirect led to a host that is closed.
    ran.footer("--allow-domain other.test:443");
    left_nothing(&town);
}

#[test]
fn it_goes_to_its_host_only_and_only_for_the_placeholder() {
    let Some(town) = town() else { return };
    let flags = ["--credential", "demo", "--allow-domain", "other.test", "--allow-domain", "allowed.test"];
    let script = "curl -sS -o out --cacert ca.pem -H \"X-Demo-Token: $DEMO_TOKEN\" https://other.test/hello
         curl -sS -o out -H \"X-Demo-Token: $DEMO_TOKEN\" http://allowed.test/hello
         curl -sS -o out -H \"X-Demo-Token: $DEMO_TOKEN\" http://other.test/hello";
    let ran = Ran::of(nono(&town, &flags, script).env("DEMO_TOKEN", SECRET));
    let shown = shown(&town);
    assert_eq!(shown.len(), 3, "{shown:?} {ran:?}");
    assert!(shown.iter().all(|token| token.starts_with("nono-dummy-")), "{shown:?}");
    left_nothing(&town);
}

#[test]
fn a_file_is_for_its_owner_alone_and_closed_to_the_command() {
    let Some(town) = town() else { return };
    town.world.file("other/token", &format!("{SECRET}\n"), 0o600);
    let file = town.world.path("other/token");
    let source = format!("demo=file:{}", file.display());
    let other = town.world.path("other");
    let get = "curl -sS --fail -H \"X-Demo-Token: $DEMO_TOKEN\" https://allowed.test/hello";
    let ran =
        Ran::of(&mut nono(&town, &["--credential", &source], &format!("{get}; cat {}", file.display())));
    assert!(ran.out.contains("hello from allowed.test"), "{ran:?}");
    assert!(ran.code != 0 && !ran.out.contains(SECRET), "{ran:?}");
    assert_eq!(shown(&town), [SECRET]);
    // Also where everything around it is granted.
    let flags = ["--credential", &source, "--read", other.to_str().unwrap()];
    let ran = Ran::of(&mut nono(&town, &flags, &format!("cat {}", file.display())));
    assert!(ran.code != 0 && !ran.out.contains(SECRET), "{ran:?}");
    // Not where others can read it too.
    town.world.file("other/open", SECRET, 0o644);
    let open = format!("demo=file:{}/open", other.display());
    let ran = Ran::of(&mut nono(&town, &["--credential", &open], "echo ran"));
    assert_eq!((ran.code, ran.out.as_str()), (125, ""), "{ran:?}");
    assert!(
        ran.err.contains("can be read by others (mode 0644)") && ran.err.contains("chmod 600"),
        "{ran:?}"
    );
    assert!(!ran.err.contains(SECRET), "{ran:?}");
    left_nothing(&town);
}

#[test]
fn a_cmd_source_supplies_the_secret() {
    let Some(town) = town() else { return };
    town.world.file("other/token", SECRET, 0o600);
    let source = format!("demo=cmd:cat {}", town.world.path("other/token").display());
    let get = "curl -sS --fail -H \"X-Demo-Token: $DEMO_TOKEN\" https://allowed.test/hello";
    let ran = Ran::of(&mut nono(&town, &["--credential", &source], get));
    ran.says("hello from allowed.test");
    assert_eq!(shown(&town), [SECRET]);
    let ran = Ran::of(&mut nono(&town, &["--credential", "demo=cmd:echo no >&2; exit 3"], "echo ran"));
    assert!(ran.code == 125 && ran.out.is_empty() && ran.err.contains("its command: it failed"), "{ran:?}");
    left_nothing(&town);
}

#[test]
fn without_a_keyring_or_a_variable_it_is_said_what_is_missing() {
    let Some(town) = town() else { return };
    for (source, expected) in [
        ("demo=keyring:demo/me", "the keyring needs secret-tool, which is not installed"),
        ("demo", "DEMO_TOKEN is not set"),
        ("demo=env:NOT_THERE", "NOT_THERE is not set"),
        ("demo=file:/nowhere/token", "/nowhere/token"),
    ] {
        // Where a machine has the tool, it is not found.
        let mut command = town.command("env");
        command.arg(format!("PATH={}", town.world.path("bin").display()));
        command.args(["nono", "run", "--allow", ".", "--credential", source, "--", "/bin/echo", "ran"]);
        let ran = Ran::of(&mut command);
        assert_eq!((ran.code, ran.out.as_str()), (125, ""), "{source}: {ran:?}");
        assert!(ran.err.contains(expected), "{source}: {ran:?}");
    }
}

#[test]
fn it_has_its_place_in_a_login_or_an_address_too() {
    let Some(town) = town() else { return };
    for (place, request) in [
        ("basic_user = \"me\"", "-u me:$DEMO_TOKEN https://allowed.test/reflect/body"),
        ("query = \"key\"", "https://allowed.test/reflect/body?key=$DEMO_TOKEN"),
        ("", "-H \"Authorization: Bearer $DEMO_TOKEN\" https://allowed.test/reflect/body"),
    ] {
        let service =
            format!("[credentials.demo]\nhost = \"allowed.test\"\nenv = [\"DEMO_TOKEN\"]\n{place}\n");
        town.world.file("state/config.toml", &service, 0o600);
        let ran = Ran::of(&mut with_variable(&town, &format!("curl -sS --fail {request}")));
        let got = town.got().pop().unwrap().to_string();
        // The same pair as the secret alone stands for in base64 is another text: `me:` goes before it.
        let login = "bWU6ZGVtby1TZWNyZXQtN2YzYTljNTFkMg==";
        assert!(got.contains(SECRET) || got.contains(login), "{place}: {got} {ran:?}");
        for what in [SECRET, login, "ZGVtby1TZWNyZXQtN2YzYTljNTFkMg"] {
            assert!(!ran.out.contains(what) && !ran.err.contains(what), "{place}: {ran:?}");
        }
        assert_eq!(ran.code, 0, "{place}: {ran:?}");
    }
    left_nothing(&town);
}
