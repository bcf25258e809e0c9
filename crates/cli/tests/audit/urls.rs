//! `--open-url`: the person is asked, and what was answered is on record.

use std::fs;

use super::kit::Kit;
use nono_testkit::look::eventually;
use nono_testkit::screen::Screen;

const ADDRESS: &str = "https://example.org/x?token=abc123secret&page=7";

/// With a browser that notes down what it is called with.
fn kit() -> Kit {
    let kit = Kit::new();
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> {}\n", kit.world.path("tmp/opened").display());
    kit.world.file("bin/xdg-open", &script, 0o755);
    kit
}

fn opened(kit: &Kit) -> String {
    fs::read_to_string(kit.world.path("tmp/opened")).unwrap_or_default()
}

/// A run that wants this address opened, answered with a key; its exit status.
fn answered(kit: &Kit, screen: &Screen<'_>, key: &str) -> i32 {
    screen.clear();
    screen.start(&format!("nono run --silent --allow-cwd --open-url -- sh -c '\"$BROWSER\" \"{ADDRESS}\"'"));
    screen.look("the question", |text| {
        let asks = text.contains("wants to open this in your browser") && text.contains("Allow? [y/N]");
        (asks && text.replace("\n[nono]   ", "").contains("example.org/x")).then_some(())
    });
    let before = opened(kit);
    screen.key(key);
    let status = screen.prompt();
    assert!(key == "y" || opened(kit) == before);
    status
}

#[test]
fn an_address_is_opened_when_the_person_agrees() {
    let kit = kit();
    let screen = Screen::new(&kit.world);
    let before = kit.ids();
    assert_eq!(answered(&kit, &screen, "y"), 0, "{}", screen.text());
    eventually(|| opened(&kit), || (opened(&kit) == format!("{ADDRESS}\n")).then_some(()));
    let id = kit.new_id(&before);
    let urls = kit.events_of(&id, "url_open");
    assert_eq!(urls.len(), 1);
    let url = urls[0]["url"].as_str().unwrap();
    assert!(url.starts_with("https://example.org/x?token=[redacted:") && url.ends_with("&page=7"), "{url}");
    assert_eq!((&urls[0]["decision"], &urls[0]["error"]), (&"allowed".into(), &serde_json::Value::Null));
    assert_eq!(kit.record(&id)["counts"]["urls"]["allowed"], 1);

    let before = kit.ids();
    assert_eq!(answered(&kit, &screen, "n"), 1, "{}", screen.text());
    let id = kit.new_id(&before);
    let urls = kit.events_of(&id, "url_open");
    assert_eq!((urls.len(), &urls[0]["decision"]), (1, &"denied".into()));
    assert_eq!(opened(&kit).lines().count(), 1);
    kit.good();
    let shown = kit.nono(&["audit", "show", &id]).ok().out;
    assert!(shown.contains("example.org/x") && !shown.contains("abc123secret"), "{shown}");
}

#[test]
fn anything_else_is_refused_without_a_question() {
    let kit = kit();
    // Without a terminal there is no answer; what is refused at once is not even asked about.
    for (flags, script, why) in [
        (&["--open-url"][..], "\"$BROWSER\" file:///etc/passwd", "only http:// and https://"),
        (&["--open-url"], "\"$BROWSER\" 'javascript:alert(1)'", "only http:// and https://"),
        (&["--open-url"], "\"$BROWSER\" https://me:pw@example.org/", "user name or password before the host"),
        (&[], "nono __open-url https://example.org/", "started without --open-url"),
    ] {
        let grant = kit.world.path("bin").display().to_string();
        let flags = [&["--read", grant.as_str()], flags].concat();
        let said = kit.run(&flags, script).code(1);
        assert!(said.err.contains("not opened") && said.err.contains(why), "{script}: {said:?}");
    }
    let said = kit.run(&[], "echo \"browser: $BROWSER\"").ok();
    assert_eq!(said.out, "browser: \n", "nothing pretends to be one");
    // And without an approver, a web address is not opened either.
    kit.run(&["--open-url"], "\"$BROWSER\" https://example.org/").code(1);
    assert_eq!(opened(&kit), "");
    kit.good();
}
