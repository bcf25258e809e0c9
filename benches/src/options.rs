//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "usage: nono-benches NONO [--quick] [--only sandbox|asking|network|snapshot|rollback|checkpoints] [--fs tmpfs|disk] [--tree DIR] \
                                [--rounds N]";

/// A part of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Sandbox,
    Asking,
    Network,
    Snapshot,
    Rollback,
    Checkpoints,
}

/// File system of trees and stores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Tmpfs,
    Disk,
}

pub(crate) struct Options {
    /// The binary.
    pub(crate) nono: PathBuf,
    pub(crate) quick: bool,
    only: Option<Part>,
    fs: Option<Place>,
    /// The Linux source, unpacked.
    pub(crate) tree: Option<PathBuf>,
    rounds: Option<usize>,
}

impl Options {
    pub(crate) fn parse(args: &[OsString]) -> Result<Options, String> {
        let mut words = args.iter();
        let nono = words.next().ok_or("which binary is measured?")?.into();
        let tree = std::env::var_os("NONO_BENCH_TREE").map(PathBuf::from);
        let mut options = Options { nono, quick: false, only: None, fs: None, tree, rounds: None };
        while let Some(flag) = words.next() {
            let flag = flag.to_string_lossy();
            if flag == "--quick" {
                options.quick = true;
                continue;
            }
            let value =
                words.next().ok_or_else(|| format!("{flag}: a value is missing, or it is unknown"))?;
            options.set(&flag, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &OsString) -> Result<(), String> {
        match (flag, value.to_str()) {
            ("--only", Some("sandbox")) => self.only = Some(Part::Sandbox),
            ("--only", Some("asking")) => self.only = Some(Part::Asking),
            ("--only", Some("network")) => self.only = Some(Part::Network),
            ("--only", Some("snapshot")) => self.only = Some(Part::Snapshot),
            ("--only", Some("rollback")) => self.only = Some(Part::Rollback),
            ("--only", Some("checkpoints")) => self.only = Some(Part::Checkpoints),
            ("--fs", Some("tmpfs")) => self.fs = Some(Place::Tmpfs),
            ("--fs", Some("disk")) => self.fs = Some(Place::Disk),
            ("--tree", _) => self.tree = Some(value.into()),
            ("--rounds", Some(text)) => {
                self.rounds = Some(text.parse().map_err(|_| format!("{flag} {text}: not a number"))?);
            }
            _ => return Err(format!("{flag} {}: unknown", value.to_string_lossy())),
        }
        Ok(())
    }

    pub(crate) fn wants(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    pub(crate) fn wants_on(&self, place: Place) -> bool {
        self.fs.is_none_or(|fs| fs == place)
    }

    /// Repetitions of what takes seconds.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 5 }).max(1)
    }

    /// Repetitions of what takes some tenths of a second.
    pub(crate) fn short_rounds(&self) -> usize {
        self.rounds() * if self.quick { 1 } else { 3 }
    }
}
