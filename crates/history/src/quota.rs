//! Freeing space in the store: how many removable entries have to go, and which are spared.

use std::path::Path;

use nono_snapshot::store::Store;
use nono_snapshot::{Candidate, Cause, Coverage, freed};
use nono_sys::{fs, time};

use crate::error::{HistoryError, Result};

/// Seconds after its last work during which an owner keeps everything: the user may be working with it.
const RECENT: u64 = 300;
/// Maximum number of rounds of [`retry`].
const ROUNDS: usize = 4;

/// Entries to remove to free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victims {
    /// Number of them, from the first on.
    pub count: usize,
    /// Whether that frees enough.
    pub enough: bool,
    /// Bytes freed, including what is removed in any case.
    pub freed: u64,
}

/// Choose as few of `victims` as needed, in their order, to free `missing` bytes when `going` is removed in any case.
/// An owner removed as a whole frees its folder too.
pub fn victims(
    store: &Store,
    going: Vec<Candidate>,
    victims: Vec<Candidate>,
    missing: u64,
) -> Result<Victims> {
    let before = going.len();
    let mut folders = Vec::with_capacity(victims.len());
    for one in &victims {
        let folder = if one.snapshots.is_none() { disk_bytes(&one.dir)? } else { 0 };
        folders.push(folder);
    }
    let freed = freed(store, &going.into_iter().chain(victims).collect::<Vec<_>>())?;
    let (sure, each) = freed.each.split_at(before.min(freed.each.len()));
    let sure = sure.iter().fold(freed.garbage, |sum, bytes| sum.saturating_add(*bytes));
    let each: Vec<u64> =
        each.iter().zip(folders).map(|(bytes, folder)| bytes.saturating_add(folder)).collect();
    Ok(until_enough(sure, &each, missing))
}

fn until_enough(sure: u64, each: &[u64], missing: u64) -> Victims {
    let mut freed = sure;
    let mut count = 0;
    for bytes in each {
        if freed >= missing {
            break;
        }
        freed = freed.saturating_add(*bytes);
        count += 1;
    }
    Victims { count, enough: freed >= missing, freed }
}

/// Run `work`, and while it does not fit, make room for the `needed` bytes and run it again. Each round frees what the one
/// before was short of; sizes are estimates, which may be wrong more than once. `make_room` is false if that is impossible.
pub fn retry<T, E, F>(
    mut work: impl FnMut() -> Result<T, E>,
    needed: impl Fn(&E) -> Option<u64>,
    mut make_room: impl FnMut(u64) -> Result<bool, F>,
) -> Result<Result<T, E>, F> {
    let mut outcome = work();
    for _ in 0..ROUNDS {
        let Some(bytes) = outcome.as_ref().err().and_then(&needed) else { break };
        if !make_room(bytes)? {
            break;
        }
        outcome = work();
    }
    Ok(outcome)
}

/// Bytes on disk of everything below a folder.
pub fn disk_bytes(path: &Path) -> Result<u64> {
    fs::disk_bytes(path).map_err(|(path, source)| HistoryError::Io { path, source })
}

/// Whether something that ended or was taken at `moment` (ISO 8601) is too recent to remove.
pub fn is_recent(moment: &str) -> bool {
    let now = time::now_ms() / 1000;
    // A time in the future comes from a wrong clock.
    time::seconds(moment).is_some_and(|then| then <= now && now - then < RECENT)
}

/// Warning about paths that a snapshot leaves out for lack of space.
pub fn gaps(coverage: &Coverage) -> Option<String> {
    let left_out = coverage.left_out.iter().find(|left_out| left_out.cause == Cause::OverBudget)?;
    let names: Vec<String> = left_out.examples.iter().map(|one| one.path.display().to_string()).collect();
    let more = left_out.entries.saturating_sub(names.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("not protected, because the store is full: {}{more}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_as_needed_go() {
        let of = |sure, each: &[u64], missing| {
            let Victims { count, enough, freed } = until_enough(sure, each, missing);
            (count, enough, freed)
        };
        assert_eq!(of(10, &[5, 5], 10), (0, true, 10));
        assert_eq!(of(0, &[5, 5, 5], 6), (2, true, 10));
        assert_eq!(of(3, &[5, 5, 5], 8), (1, true, 8));
        assert_eq!(of(1, &[5, 5, 5], 17), (3, false, 16));
        assert_eq!(of(0, &[], 1), (0, false, 0));
    }

    #[test]
    fn room_is_made_until_it_fits_or_cannot() {
        let tries = |rounds_short: u64, can: bool| {
            let (short, made) = (std::cell::Cell::new(rounds_short), std::cell::Cell::new(0));
            let work = || if short.get() == 0 { Ok(()) } else { Err(short.get()) };
            let make = |needed| {
                made.set(made.get() + 1);
                short.set(needed - 1);
                Ok::<_, ()>(can)
            };
            (retry(work, |needed| Some(*needed), make).unwrap(), made.get())
        };
        assert_eq!(tries(0, true), (Ok(()), 0));
        assert_eq!(tries(2, true), (Ok(()), 2));
        assert_eq!(tries(9, true), (Err(5), 4));
        assert_eq!(tries(9, false), (Err(9), 1));
    }

    #[test]
    fn young_is_neither_old_nor_of_the_future() {
        let at = |ago: i64| time::iso_ms(time::now_ms().saturating_add_signed(-ago * 1000));
        assert!(is_recent(&at(10)));
        assert!(!is_recent(&at(400)) && !is_recent(&at(-400)) && !is_recent("yesterday"));
    }
}
