use super::*;

fn rules(rules: &[&str]) -> Vec<HostRule> {
    rules.iter().map(|rule| rule.parse().unwrap()).collect()
}

fn dial(allowed: &[&str], host: &str, port: u16, address: &str) -> bool {
    let target = RequestTarget { host: host.parse().unwrap(), port };
    may_dial(&rules(allowed), &target, address.parse().unwrap())
}

const CLOSED: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "::ffff:0:8.8.8.8",
    "64:ff9b::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:808:808::1",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff:ffff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "feff::1",
    "ff02::1",
    "ff0e::1",
];

const OPEN: &[&str] = &[
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "64:ff9b::8.8.8.8",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2003::1",
    "2606:4700:4700::1111",
    "3fff:1000::1",
];

#[test]
fn the_internet_is_open_and_the_rest_is_not() {
    for address in CLOSED {
        assert!(class_of(address.parse().unwrap()).is_some(), "{address}");
        assert!(!dial(&["a.test", "*.test"], "a.test", 80, address), "{address}");
    }
    for address in OPEN {
        assert_eq!(class_of(address.parse().unwrap()), None, "{address}");
        assert!(dial(&["a.test"], "a.test", 80, address), "{address}");
    }
}

#[test]
fn a_rule_with_the_very_address_opens_it() {
    for address in CLOSED {
        let rule = Host::Address(address.parse().unwrap()).to_string();
        assert!(dial(&[&rule], &rule, 80, address), "{address}");
        assert!(dial(&["a.test", &rule], "a.test", 80, address), "{address}");
        assert!(dial(&[&format!("{rule}:80")], &rule, 80, address), "{address}");
        assert!(!dial(&["a.test", &format!("{rule}:81")], "a.test", 80, address), "{address}");
    }
    assert!(!dial(&["127.0.0.1", "a.test"], "a.test", 80, "127.0.0.2"));
    assert!(!dial(&["127.0.0.1", "a.test"], "a.test", 80, "::ffff:127.0.0.1"));
}

#[test]
fn localhost_is_loopback_and_nothing_else() {
    for host in ["localhost", "LOCALHOST.", "a.localhost"] {
        assert!(dial(&[host], host, 80, "127.0.0.1"), "{host}");
        assert!(dial(&[host], host, 80, "::1"), "{host}");
        for other in ["10.0.0.1", "8.8.8.8", "::ffff:127.0.0.1", "169.254.169.254"] {
            assert!(!dial(&[host], host, 80, other), "{host} {other}");
        }
    }
    assert!(!dial(&["localhost.test"], "localhost.test", 80, "127.0.0.1"));
    assert!(!dial(&["mylocalhost"], "mylocalhost", 80, "127.0.0.1"));
}

#[test]
fn metadata_by_its_very_address_only() {
    for name in ["metadata.google.internal", "metadata.goog", "metadata.azure.internal"] {
        assert!(!dial(&[name], name, 80, "169.254.169.254"), "{name}");
        assert!(!dial(&[name], name, 80, "8.8.8.8"), "{name}");
        assert!(dial(&[name, "169.254.169.254"], name, 80, "169.254.169.254"), "{name}");
    }
}
