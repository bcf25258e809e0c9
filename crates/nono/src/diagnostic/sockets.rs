//! Meaning of sockets served outside the sandbox. Their servers act outside, so a flag is suggested only for those
//! known to serve data and nothing else.

use std::path::Path;

use super::probes::matches;

/// Data servers: a client can do no more than change the data they keep.
const SERVERS: &[&str] = &[
    "**/.s.PGSQL.*",
    "**/mysql.sock",
    "**/mysqld.sock",
    "**/mysqld/mysqld.sock",
    "**/mariadb.sock",
    "**/redis*.sock",
    "**/redis/*.sock",
    "**/valkey*.sock",
    "**/memcached*.sock",
    "**/mongodb-*.sock",
];

/// Ways out of the sandbox, with a description. The first match counts.
const WAYS_OUT: &[(&str, &str)] = &[
    ("**/docker.sock", CONTAINERS),
    ("**/docker*/**", CONTAINERS),
    ("**/podman/**", CONTAINERS),
    ("**/containerd/**", CONTAINERS),
    ("**/crio/**", CONTAINERS),
    ("**/buildkit/**", CONTAINERS),
    ("**/lxd/**", CONTAINERS),
    ("**/incus/**", CONTAINERS),
    ("/run/user/*/bus", BUS),
    ("/run/dbus/**", BUS),
    ("/var/run/dbus/**", BUS),
    ("/tmp/dbus-*", BUS),
    ("/tmp/dbus-*/**", BUS),
    ("**/systemd/**", "the service manager, which starts programs outside"),
    ("/tmp/.X11-unix/*", DISPLAY),
    ("/run/user/*/wayland-*", DISPLAY),
    ("/run/user/*/at-spi/**", DISPLAY),
    ("**/tmux-*/*", TERMINALS),
    ("**/screen/**", TERMINALS),
    ("**/screens/**", TERMINALS),
    ("**/zellij*/**", TERMINALS),
    ("**/kitty-*", TERMINALS),
    ("**/vscode-*", EDITOR),
    ("**/.vscode*/**", EDITOR),
    ("**/.cursor*/**", EDITOR),
    ("**/emacs*/**", EDITOR),
    ("**/nvim*/**", EDITOR),
    ("**/*codex*", AGENT),
    ("**/*codex*/**", AGENT),
    ("**/*claude*", AGENT),
    ("**/*claude*/**", AGENT),
    ("**/*opencode*", AGENT),
    ("**/*opencode*/**", AGENT),
    ("**/*gemini*", AGENT),
    ("**/*gemini*/**", AGENT),
    ("**/*qwen*", AGENT),
    ("**/*qwen*/**", AGENT),
    ("**/*hermes*", AGENT),
    ("**/*hermes*/**", AGENT),
    ("/nix/var/nix/daemon-socket/**", "a daemon that runs builds outside"),
    ("**/snapd*.socket", "a daemon that installs programs"),
    ("**/ssh-*/agent.*", KEYS),
    ("**/keyring/**", KEYS),
    ("**/S.gpg-agent*", KEYS),
    ("**/gnupg/**", KEYS),
    ("**/1password/**", KEYS),
];

const CONTAINERS: &str = "a container engine, which starts programs outside, often as root";
const BUS: &str = "D-Bus, through which services outside start programs";
const DISPLAY: &str = "a display server, whose clients read and type in every window";
const TERMINALS: &str = "terminals outside, whose clients type into their shells";
const EDITOR: &str = "an editor outside, which opens files and runs commands";
const AGENT: &str = "an agent outside, which is not in this sandbox";
const KEYS: &str = "a key agent, whose clients sign with your keys";
const UNKNOWN: &str = "a service outside the sandbox, which acts there for its clients";

/// Description of the socket at `path`. `None`: a data server, which may be suggested.
pub fn socket_meaning(path: &Path) -> Option<&'static str> {
    if SERVERS.iter().any(|pattern| matches(pattern, path)) {
        return None;
    }
    let known = WAYS_OUT.iter().find(|(pattern, _)| matches(pattern, path));
    Some(known.map_or(UNKNOWN, |(_, meaning)| *meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_data_are_proposed() {
        for path in ["/var/run/postgresql/.s.PGSQL.5432", "/run/mysqld/mysqld.sock", "/tmp/redis-1.sock"] {
            assert_eq!(socket_meaning(Path::new(path)), None, "{path}");
        }
        for (path, meaning) in [
            ("/var/run/docker.sock", CONTAINERS),
            ("/run/user/1000/podman/podman.sock", CONTAINERS),
            ("/home/me/.docker/run/docker.sock", CONTAINERS),
            ("/run/user/1000/bus", BUS),
            ("/run/dbus/system_bus_socket", BUS),
            ("/tmp/.X11-unix/X0", DISPLAY),
            ("/run/user/1000/wayland-0", DISPLAY),
            ("/tmp/tmux-1000/default", TERMINALS),
            ("/tmp/codex-daemon-1000/s.sock", AGENT),
            ("/home/me/.claude/ide/x.sock", AGENT),
            ("/tmp/ssh-XXXX/agent.12", KEYS),
            ("/tmp/whatever.sock", UNKNOWN),
        ] {
            assert_eq!(socket_meaning(Path::new(path)), Some(meaning), "{path}");
        }
        assert!(socket_meaning(Path::new("/run/user/1000/systemd/private")).unwrap().contains("manager"));
    }
}
