//! Completions and manual pages, from the same definitions as `--help`.

use std::io;
use std::path::Path;

use clap::CommandFactory;

use crate::args::{Cli, ManArgs};
use crate::failure::{Failure, words};
use crate::message;

pub(crate) fn completion(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nono", &mut script);
    message::answer(String::from_utf8_lossy(&script).trim_end())?;
    Ok(0)
}

pub(crate) fn man(args: &ManArgs) -> Result<u8, Failure> {
    let mut nono = Cli::command();
    nono.build();
    match (&args.dir, &args.command) {
        (Some(dir), _) => write_all(&nono, dir)
            .map_err(|error| Failure::new(format!("{}: {}", nono::diagnostic::shown(dir), words(&error))))?,
        (None, None) => message::answer(&page(nono)?)?,
        (None, Some(name)) => match nono.find_subcommand(name) {
            Some(command) => message::answer(&page(command.clone())?)?,
            None => {
                return Err(
                    Failure::usage(format!("there is no command {name:?}")).hint("nono --help lists them")
                );
            }
        },
    }
    Ok(0)
}

fn page(command: clap::Command) -> io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).trim_end().to_owned())
}

fn write_all(nono: &clap::Command, dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(nono.clone(), dir)
}
