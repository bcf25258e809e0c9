//! `nono completion` and `nono man`: generated from the same definitions as `--help`.

use std::io;
use std::path::Path;

use clap::CommandFactory;

use super::links;
use crate::args::{Cli, ManArgs};
use crate::failure::Failure;
use crate::host::host;
use crate::message;

pub(crate) fn completion(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nono", &mut script);
    message::answer(String::from_utf8_lossy(&script).trim_end())
}

pub(crate) fn man(args: &ManArgs) -> Result<u8, Failure> {
    let mut nono = Cli::command();
    nono.build();
    match (&args.dir, &args.command) {
        (Some(dir), _) => write_all(nono, dir),
        (None, None) => message::answer(&page(nono)?),
        (None, Some(name)) => match nono.find_subcommand(name) {
            Some(command) => message::answer(&page(command.clone())?),
            None => {
                Err(Failure::usage(format!("there is no command {name:?}")).hint("nono --help lists them"))
            }
        },
    }
}

fn page(command: clap::Command) -> io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).trim_end().to_owned())
}

/// Writes a page for every command, as `clap_mangen::generate_to` does, but follows no link in `dir`.
fn write_all(nono: clap::Command, dir: &Path) -> Result<u8, Failure> {
    std::fs::create_dir_all(dir).map_err(|error| Failure::cannot("create", dir, &error))?;
    let mut nono = nono.disable_help_subcommand(true);
    nono.build();
    // Package builds may have no home.
    let host = host(None).ok();
    let mut waiting = vec![nono];
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        let page = clap_mangen::Man::new(command);
        let file = dir.join(page.get_filename());
        let mut out = links::create(&file, host.as_ref(), 0o666)?;
        page.render(&mut out).map_err(|error| Failure::cannot("write", &file, &error))?;
    }
    Ok(0)
}
