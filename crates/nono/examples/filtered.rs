//! A run whose network is filtered, with a proxy that lets nobody through: it accepts, says `proxy`, and hangs up.
//!
//! `filtered run [--allow DIR] [--read DIR] [--connect-port N] [--proxy-port N] [--fail WHY] -- COMMAND ARGS…`. On the
//! host's network the proxy listens on the port that is given, on one of the command's own always on the same. With `--fail`
//! there is none.

#![allow(clippy::print_stderr, reason = "an example's output")]

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use nono::session::{self, Host, SessionFolder};
use nono::{
    AccessMode, Ended, ExecStrategy, GrantKind, GrantRequest, HostContext, NetworkPolicy, RunRequest,
};
use nono_sandbox::{Mediation, Prepared, ProxyPlace, compile, support};
use nono_supervisor::mediate::Mediate;
use nono_supervisor::{CommandSpec, Options, take_signals};

struct Wish {
    request: RunRequest,
    proxy_port: u16,
    fail: Option<String>,
    command: Vec<OsString>,
}

fn wish() -> Result<Wish, Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).skip_while(|word| word == "run");
    let mut request = RunRequest::default();
    let (mut connect, mut proxy_port, mut fail) = (Vec::new(), 0, None);
    while let Some(flag) = args.next().filter(|word| word != "--") {
        let value = args.next().ok_or("a flag without its value")?;
        let grant = |access| GrantRequest { path: value.clone().into(), access, kind: GrantKind::Directory };
        let number = || value.to_string_lossy().parse::<u16>();
        match flag.to_str() {
            Some("--allow") => request.grants.push(grant(AccessMode::ReadWrite)),
            Some("--read") => request.grants.push(grant(AccessMode::Read)),
            Some("--connect-port") => connect.push(number()?),
            Some("--proxy-port") => proxy_port = number()?,
            Some("--fail") => fail = Some(value.to_string_lossy().into_owned()),
            _ => return Err(format!("{} is not known", flag.display()).into()),
        }
    }
    let hosts = vec!["example.org".parse()?];
    request.network = Some(NetworkPolicy::Filtered { hosts, connect, listen: Vec::new() });
    Ok(Wish { request, proxy_port, fail, command: args.collect() })
}

fn host() -> Result<Host, Box<dyn Error>> {
    let home = PathBuf::from(std::env::var_os("HOME").ok_or("no HOME")?);
    Ok(Host {
        context: HostContext {
            cwd: std::env::current_dir()?,
            state_dir: home.join(".nono"),
            config_dir: home.join(".config/nono"),
            agent_folders: Vec::new(),
            can_mask: true,
            home: Some(home.clone()),
            ..HostContext::default()
        },
        env: std::env::vars_os().collect(),
        session_base: home.join("sessions"),
        profile_dir: None,
        nested: false,
    })
}

fn serve(listener: TcpListener) {
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Who does not listen is not told.
            let _ = stream.write_all(b"proxy\n");
        }
    });
}

fn run() -> Result<u8, Box<dyn Error>> {
    let Wish { mut request, proxy_port, fail, command } = wish()?;
    let mut host = host()?;
    let program = session::find_program(&command, &host)?;
    request.program = Some(program.clone());
    let folder = SessionFolder::create(&host.session_base)?;
    host.context.session_dir = Some(folder.dir.clone());
    let support = support();
    let policy = session::resolve(&request, &session::profile(&request, &host)?, &host)?;
    let mut blueprint = compile(&policy, &support, ExecStrategy::Supervised, &folder.paths())?;
    if let Some(ProxyPlace::Host(_)) = blueprint.proxy {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, proxy_port);
        serve(TcpListener::bind(address)?);
        blueprint = blueprint.proxy_at(address);
    }
    let prepared = Prepared::new(blueprint.mediate(Mediation::default(), &support)?, folder.paths())?;
    let take = move |listener: OwnedFd| {
        serve(TcpListener::from(listener));
        fail.clone().map_or(Ok(()), |why| Err(why.into()))
    };
    let mediate = Mediate {
        own_network: prepared.blueprint().layers.net,
        policy: Arc::new(policy),
        private: Vec::new(),
        own: vec![host.session_base.clone()],
        judges_metadata: !prepared.blueprint().layers.mount,
        backend: None,
        snapshots: None,
        record: false,
        log: None,
        redact: None,
        urls: None,
        history: None,
        proxy: Some(Arc::new(take)),
    };
    let command = CommandSpec { program, argv: command, env: host.env };
    let options = Options {
        interactive: false,
        asking: None,
        listen: false,
        output_aside: false,
        streams: None,
        cancel: None,
        grace_ms: 1000,
    };
    let outcome = nono_supervisor::run(&prepared, &command, &options, &take_signals()?, mediate, None)?;
    for refused in &outcome.mediation.refused {
        eprintln!("refused: {:?} {}", refused.attempt, refused.count);
    }
    Ok(match outcome.ended {
        Ended::Code(code) => u8::try_from(code).unwrap_or(1),
        Ended::Signal(signal) => 128 + u8::try_from(signal).unwrap_or(0),
    })
}

fn main() -> ExitCode {
    run().map_or_else(
        |error| {
            eprintln!("filtered: {error}");
            ExitCode::from(125)
        },
        ExitCode::from,
    )
}
