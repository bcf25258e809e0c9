use nono_policy::{AccessMode, CapabilitySet};

use super::*;

fn support(abi: u32, namespaces: bool) -> Support {
    Support {
        kernel: "test".to_owned(),
        landlock: Ok(abi),
        seccomp_notify: true,
        notify: Ok(crate::NotifySupport { wait_killable: true, sync_wake_up: true }),
        namespaces: if namespaces {
            Namespaces::Available { user: true }
        } else {
            Namespaces::Missing { reason: "not here".to_owned() }
        },
        ptrace_scope: None,
    }
}

fn session() -> SessionPaths {
    let at = |name: &str| PathBuf::from("/session").join(name);
    SessionPaths {
        dir: "/session/one".into(),
        mask_dir: at("closed"),
        mask_file: at("closed-file"),
        empty_dir: at("empty"),
        run_dir: at("one/run"),
        others: Vec::new(),
    }
}

struct MountTree(tempfile::TempDir);

impl MountTree {
    /// Tree with `project/secret` and `data`.
    fn new() -> MountTree {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/sub")).unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        std::fs::write(dir.path().join("project/secret"), "x").unwrap();
        MountTree(dir)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn policy(&self, deny: bool, network: NetworkPolicy) -> ResolvedPolicy {
        let mut caps = CapabilitySet::new();
        caps.allow_path(self.path("project"), AccessMode::ReadWrite).unwrap();
        caps.allow_path(self.path("project/sub"), AccessMode::ReadWrite).unwrap();
        caps.allow_path(self.path("data"), AccessMode::Read).unwrap();
        caps.set_network(network);
        if deny {
            caps.deny(self.path("project/secret")).unwrap();
        }
        caps.to_policy().unwrap()
    }
}

fn position(blueprint: &Blueprint, wanted: impl Fn(&MountStep) -> bool) -> usize {
    blueprint.mounts.iter().position(wanted).expect("the step is there")
}

#[test]
fn what_is_closed_later_cannot_be_uncovered() {
    let tree = MountTree::new();
    let policy = tree.policy(true, NetworkPolicy::Blocked);
    let blueprint = compile(&policy, &support(7, true), ExecStrategy::Supervised, &session()).unwrap();
    let project = tree.path("project");
    let keep = position(&blueprint, |step| *step == MountStep::Keep { path: project.clone() });
    let read_only = position(&blueprint, |step| *step == MountStep::ReadOnlyRoot);
    let back = position(&blueprint, |step| *step == MountStep::PutBack { path: project.clone() });
    let mask = position(
        &blueprint,
        |step| matches!(step, MountStep::Mask { target, must: true, .. } if *target == tree.path("project/secret")),
    );
    assert!(keep < read_only && read_only < back && back < mask);
    assert_eq!(blueprint.watched, [WatchedName { path: tree.path("project/secret"), cover: Cover::Nothing }]);
}

#[test]
fn only_the_outermost_writable_grant_is_mounted() {
    let tree = MountTree::new();
    let policy = tree.policy(false, NetworkPolicy::Blocked);
    let blueprint = compile(&policy, &support(7, true), ExecStrategy::Supervised, &session()).unwrap();
    let kept: Vec<&PathBuf> = blueprint
        .mounts
        .iter()
        .filter_map(|step| if let MountStep::Keep { path } = step { Some(path) } else { None })
        .collect();
    assert_eq!(kept, [&tree.path("project")]);
}

#[test]
fn a_deny_without_a_mount_namespace_is_refused() {
    let tree = MountTree::new();
    let policy = tree.policy(true, NetworkPolicy::Blocked);
    let refused = compile(&policy, &support(7, false), ExecStrategy::Supervised, &session());
    assert!(matches!(refused, Err(Refusal::CannotMask { .. })), "{refused:?}");
}

#[test]
fn a_limit_on_processes_without_a_user_namespace_is_refused_with_reason_and_hint() {
    let tree = MountTree::new();
    let mut policy = tree.policy(false, NetworkPolicy::Blocked);
    policy.limits.processes = Some(50);
    for (namespaces, why, hint) in [
        (
            Namespaces::Nested,
            "that needs a user namespace, and the outer nono sandbox allows none",
            "leave --max-procs out, or give it to the outer nono",
        ),
        (
            Namespaces::Missing { reason: "there are none".to_owned() },
            "that needs a user namespace, and there are none",
            "leave --max-procs out",
        ),
        (
            Namespaces::Available { user: false },
            "the kernel does not count root's processes",
            "run as an ordinary user",
        ),
    ] {
        let support = Support { namespaces, ..support(7, true) };
        let refused = compile(&policy, &support, ExecStrategy::Supervised, &session()).unwrap_err();
        assert_eq!(refused.to_string(), format!("cannot limit the number of processes: {why}"));
        assert_eq!(refused.hint().as_deref(), Some(hint));
    }
}

#[test]
fn an_old_kernel_is_refused_by_what_the_policy_needs() {
    let tree = MountTree::new();
    let blocked = tree.policy(false, NetworkPolicy::Blocked);
    let open = tree.policy(false, NetworkPolicy::Allowed);
    let needs = |policy: &ResolvedPolicy, abi, namespaces, strategy| match compile(
        policy,
        &support(abi, namespaces),
        strategy,
        &session(),
    ) {
        Ok(_) => None,
        Err(Refusal::LandlockTooOld { needed, .. }) => Some(needed),
        Err(other) => panic!("{other}"),
    };
    let supervised = ExecStrategy::Supervised;
    assert_eq!(needs(&blocked, 2, true, supervised), Some(3), "truncation");
    assert_eq!(needs(&blocked, 3, true, supervised), None, "namespaces hold the rest");
    assert_eq!(needs(&blocked, 5, true, ExecStrategy::Direct), Some(6), "signals without a pid namespace");
    assert_eq!(needs(&open, 5, true, supervised), Some(6), "abstract sockets on the host's network");
    assert_eq!(needs(&blocked, 5, false, supervised), Some(6));
    assert_eq!(needs(&blocked, 7, false, supervised), None);
}

#[test]
fn every_network_has_its_layers() {
    let tree = MountTree::new();
    let compiled = |network, namespaces| {
        let policy = tree.policy(false, network);
        compile(&policy, &support(7, namespaces), ExecStrategy::Supervised, &session()).unwrap()
    };
    let own = compiled(NetworkPolicy::Blocked, true);
    assert!(own.layers.net && own.handled_net == 0 && own.filter.sockets == SocketRule::OwnNetwork);
    let none = compiled(NetworkPolicy::Blocked, false);
    assert!(!none.layers.net && none.handled_net != 0 && none.filter.sockets == SocketRule::NoInternet);
    let ports = compiled(NetworkPolicy::Ports { connect: vec![80], listen: vec![8080] }, true);
    assert!(!ports.layers.net && ports.filter.sockets == SocketRule::TcpOnly);
    assert_eq!(ports.ports, [(80, net::CONNECT_TCP), (8080, net::BIND_TCP)]);
    assert_eq!(compiled(NetworkPolicy::Allowed, true).filter.sockets, SocketRule::Open);
}

fn filtered(connect: &[u16], listen: &[u16]) -> NetworkPolicy {
    let hosts = vec!["example.org".parse().unwrap()];
    NetworkPolicy::Filtered { hosts, connect: connect.to_vec(), listen: listen.to_vec() }
}

#[test]
fn a_filtered_network_is_the_commands_own_where_it_can_be() {
    let tree = MountTree::new();
    let compiled = |network, namespaces| {
        let policy = tree.policy(false, network);
        compile(&policy, &support(7, namespaces), ExecStrategy::Supervised, &session()).unwrap()
    };
    let own = compiled(filtered(&[], &[]), true);
    assert!(own.layers.net && own.handled_net == 0 && own.filter.sockets == SocketRule::OwnNetwork);
    assert_eq!(own.proxy, Some(ProxyPlace::Own { port: PROXY_PORT }));
    let nowhere = own.clone().proxy_at(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4711));
    assert_eq!(nowhere, own, "there is nothing on the host's network to open");
    for (network, namespaces) in
        [(filtered(&[], &[]), false), (filtered(&[80], &[]), true), (filtered(&[], &[8080]), true)]
    {
        let shared = compiled(network, namespaces);
        assert!(!shared.layers.net && shared.filter.sockets == SocketRule::TcpOnly);
        assert_eq!(shared.handled_net, net::BIND_TCP | net::CONNECT_TCP);
        assert_eq!(shared.proxy.and_then(ProxyPlace::address), None);
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4711);
        let told = shared.clone().proxy_at(address);
        assert_eq!(told.proxy, Some(ProxyPlace::Host(Some(address))));
        assert_eq!(told.ports, [&shared.ports[..], &[(4711, net::CONNECT_TCP)]].concat());
    }
    assert_eq!(compiled(NetworkPolicy::Blocked, true).proxy, None);
}

#[test]
fn a_filtered_network_is_refused_where_it_cannot_be_held() {
    let tree = MountTree::new();
    let policy = tree.policy(false, filtered(&[], &[]));
    for strategy in [ExecStrategy::Direct, ExecStrategy::Monitor] {
        let refused = compile(&policy, &support(7, true), strategy, &session());
        assert_eq!(refused, Err(Refusal::CannotFilter { strategy }));
    }
    let deaf = |namespaces| Support { notify: Err("none".to_owned()), ..support(7, namespaces) };
    let mediated = |namespaces, accept_weaker| {
        let blueprint = compile(&policy, &deaf(namespaces), ExecStrategy::Supervised, &session()).unwrap();
        blueprint.mediate(Mediation { accept_weaker, ..Mediation::default() }, &deaf(namespaces))
    };
    assert!(mediated(true, false).is_ok(), "the namespace holds it");
    let refused = mediated(false, false).unwrap_err();
    assert!(matches!(refused, Refusal::CannotMediate { what, .. } if what.contains("filtering proxy")));
    assert!(mediated(false, true).is_ok(), "the user accepts any host on that port");
}

#[test]
fn files_get_no_rights_of_directories() {
    let rule = |access, is_file| AccessRule {
        path: "/x".into(),
        access: RuleAccess::Mode(access),
        is_file,
        grant: 0,
    };
    assert_eq!(rights(&rule(AccessMode::ReadWrite, true)) & !fs::ON_FILES, 0);
    assert_eq!(rights(&rule(AccessMode::Read, false)) & WRITE, 0);
    assert_eq!(rights(&rule(AccessMode::Write, false)) & (fs::READ_FILE | fs::READ_DIR | fs::EXECUTE), 0);
    assert_eq!(rights(&rule(AccessMode::ReadWrite, false)) & (fs::MAKE_CHAR | fs::MAKE_BLOCK), 0);
    assert_eq!(handled_fs(2) & fs::TRUNCATE, 0);
    assert_eq!(handled_fs(7), fs::ALL);
}
