//! What is open beside the rules, and closed despite them.

use nono_proxy::{Category, Config, HostOverrides};

use super::world::{World, config, echo};

fn status(world: &World, host: &str, port: u16) -> u16 {
    world.ask(&format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")).status()
}

#[test]
fn all_hosts_are_this_machine_too_but_no_clouds_credentials() {
    let port = echo();
    let world = World::new(Config { reach: HostOverrides { all: true, metadata: false }, ..config(&[]) });
    world.names.lead("here.test", &[&["127.0.0.1"]]);
    world.names.lead("link.test", &[&["169.254.7.7"]]);
    world.names.lead("cloud.test", &[&["169.254.169.254"]]);
    world.names.lead("special.test", &[&["0.0.0.0"]]);
    for host in ["127.0.0.1", "localhost", "here.test"] {
        assert_eq!(status(&world, host, port), 200, "{host}");
        assert!(world.event().allowed);
    }
    for host in
        ["169.254.169.254", "metadata.google.internal", "link.test", "cloud.test", "special.test", "0.0.0.0"]
    {
        assert_eq!(status(&world, host, port), 403, "{host}");
        assert!(!world.event().allowed);
    }
}

#[test]
fn no_rule_opens_a_clouds_credentials_where_that_may_not_be() {
    let mut config = config(&["169.254.169.254", "169.254.7.7", "metadata.google.internal", "link.test"]);
    config.reach.metadata = false;
    let world = World::new(config);
    world.names.lead("link.test", &[&["169.254.7.7"]]);
    for (host, category) in [
        ("169.254.169.254", Category::HostDenied),
        ("169.254.7.7", Category::HostDenied),
        ("metadata.google.internal", Category::HostDenied),
        ("link.test", Category::AddressDenied),
    ] {
        assert_eq!(status(&world, host, 80), 403, "{host}");
        assert_eq!(world.event().category, Some(category), "{host}");
    }
}

#[test]
fn what_to_do_is_said_in_the_callers_words() {
    let world = World::new(Config { remedy: "ask for {}".to_owned(), ..config(&[]) });
    let answer = world.ask("CONNECT closed.test:443 HTTP/1.1\r\n\r\n");
    assert!(answer.text().contains("ask for closed.test:443"), "{}", answer.text());
}
