//! `nono why --host` about a filtered network.

use snapbox::str;

use super::world::World;

/// A sandbox's description of itself, its blocked network made a filtered one.
const FILTERED: &str = r#"nono run -- sh -c 'cat $NONO_CAP_FILE' |
sed -e 's/"network":"blocked"/"network":{"filtered":{"hosts":["api.example.org:443","*.example.com"],"connect":[5432],"listen":[]}}/' \
    -e 's/"hosts":\[\]/"hosts":[{"rule":"api.example.org:443","source":"user"},{"rule":"*.example.com","source":{"profile":"web"}}]/' \
    > ../home/filtered.json"#;

fn inside() -> World {
    let world = World::new();
    world.sh(FILTERED).quiet(0);
    let file = world.path("home/filtered.json");
    world.with("NONO_CAP_FILE", file.to_str())
}

#[test]
fn hosts_of_a_filtered_network() {
    inside().golden(
        &[
            "nono why --self --host API.example.org. --port 443",
            "nono why --self --host www.example.com",
            "nono why --self --host api.example.org --port 80",
            "nono why --self --host example.com",
            "nono why --self --host other.net --port 443 --exit-code",
            "nono why --self --host 0x7f.1",
        ],
        str![[r#"
$ nono why --self --host API.example.org. --port 443
ALLOWED: connect to API.example.org.:443
reason: the host is open, through the proxy
rule: api.example.org:443 [user]
note: still refused if the name resolves to one of these addresses: loopback, private, link-local, metadata, special
$ nono why --self --host www.example.com
ALLOWED: connect to www.example.com
reason: the host is open, through the proxy
rule: *.example.com [profile:web]
note: still refused if the name resolves to one of these addresses: loopback, private, link-local, metadata, special
$ nono why --self --host api.example.org --port 80
DENIED: connect to api.example.org:80
reason: the host is open, but not on this port
closest rule: api.example.org:443 [user]
to open it: --allow-domain api.example.org:80
$ nono why --self --host example.com
DENIED: connect to example.com
reason: only some hosts are open, and this is not one of them
closest rule: *.example.com [profile:web]
to open it: --allow-domain example.com
$ nono why --self --host other.net --port 443 --exit-code
DENIED: connect to other.net:443
reason: only some hosts are open, and this is not one of them
to open it: --allow-domain other.net:443
= exit 1
$ nono why --self --host 0x7f.1
DENIED: connect to 0x7f.1
reason: this is neither a host name nor an address

"#]],
    );
}

#[test]
fn addresses_of_a_filtered_network() {
    inside().golden(
        &[
            "nono why --self --host localhost --port 80",
            "nono why --self --host localhost --port 5432",
            "nono why --self --host 10.1.2.3 --port 443",
            "nono why --self --host ::1 --port 80",
            "nono why --self --host 169.254.169.254",
            "nono why --self --host metadata.google.internal",
        ],
        str![[r#"
$ nono why --self --host localhost --port 80
DENIED: connect to localhost:80
reason: it resolves to a loopback address, which needs a rule of its own
to open it: --allow-domain localhost:80
$ nono why --self --host localhost --port 5432
ALLOWED: connect to localhost:5432
reason: the port is open
$ nono why --self --host 10.1.2.3 --port 443
DENIED: connect to 10.1.2.3:443
reason: it resolves to a private address, which needs a rule of its own
to open it: --allow-domain 10.1.2.3:443
$ nono why --self --host ::1 --port 80
DENIED: connect to [::1]:80
reason: it resolves to a loopback address, which needs a rule of its own
to open it: --allow-domain '[::1]:80'
$ nono why --self --host 169.254.169.254
DENIED: connect to 169.254.169.254
reason: it resolves to a metadata address, which needs a rule of its own
to open it: --allow-domain 169.254.169.254
$ nono why --self --host metadata.google.internal
DENIED: connect to metadata.google.internal
reason: it resolves to a metadata address, which needs a rule of its own
to open it: --allow-domain with the address itself, not with a name

"#]],
    );
}

#[test]
fn as_json() {
    inside().golden(
        &[
            "nono why --self --json --host 10.1.2.3 --port 443",
            "nono why --self --json --host www.example.com",
        ],
        str![[r#"
$ nono why --self --json --host 10.1.2.3 --port 443
{
  "status": "denied",
  "host": "10.1.2.3",
  "port": 443,
  "reason": "address_denied",
  "rule": null,
  "closest": null,
  "class": "private",
  "still_refused": [],
  "suggestion": {
    "flags": [
      "--allow-domain",
      "10.1.2.3:443"
    ]
  }
}
$ nono why --self --json --host www.example.com
{
  "status": "allowed",
  "host": "www.example.com",
  "port": null,
  "reason": "host_allowed",
  "rule": {
    "rule": "*.example.com",
    "source": {
      "profile": "web"
    }
  },
  "closest": null,
  "class": null,
  "still_refused": [
    "loopback",
    "private",
    "link_local",
    "metadata",
    "special"
  ],
  "suggestion": null
}

"#]],
    );
}
