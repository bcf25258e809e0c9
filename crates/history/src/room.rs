//! Making room in the store: how many of those that may go have to, and who is spared.

use nono_snapshot::store::Store;
use nono_snapshot::{Candidate, freed};
use nono_sys::time;

use crate::error::HistoryError;

/// Seconds after its last work during which an owner keeps everything: somebody may be at it.
const RECENT: u64 = 300;

/// Victims to give up for want of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victims {
    /// Number of them, from the first on.
    pub count: usize,
    /// Whether that frees what is missing.
    pub enough: bool,
}

/// As few as needed of `victims`, in their order, to free `missing` bytes when `going` goes in any case.
pub fn victims(
    store: &Store,
    going: Vec<Candidate>,
    victims: Vec<Candidate>,
    missing: u64,
) -> Result<Victims, HistoryError> {
    let before = going.len();
    let freed = freed(store, &going.into_iter().chain(victims).collect::<Vec<_>>())?;
    let (sure, each) = freed.each.split_at(before.min(freed.each.len()));
    let sure = sure.iter().fold(freed.garbage, |sum, bytes| sum.saturating_add(*bytes));
    Ok(until_enough(sure, each, missing))
}

fn until_enough(sure: u64, each: &[u64], missing: u64) -> Victims {
    let mut free = sure;
    let mut count = 0;
    for bytes in each {
        if free >= missing {
            break;
        }
        free = free.saturating_add(*bytes);
        count += 1;
    }
    Victims { count, enough: free >= missing }
}

/// Whether work that ended, or a state that was taken, at `moment` (ISO 8601) is too young to go.
pub fn is_recent(moment: &str) -> bool {
    let now = time::now_ms() / 1000;
    // A time of the future is that of a clock that was wrong.
    time::seconds(moment).is_some_and(|then| then <= now && now - then < RECENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_as_needed_go() {
        let of = |sure, each: &[u64], missing| {
            let Victims { count, enough } = until_enough(sure, each, missing);
            (count, enough)
        };
        assert_eq!(of(10, &[5, 5], 10), (0, true));
        assert_eq!(of(0, &[5, 5, 5], 6), (2, true));
        assert_eq!(of(3, &[5, 5, 5], 8), (1, true));
        assert_eq!(of(1, &[5, 5, 5], 17), (3, false));
        assert_eq!(of(0, &[], 1), (0, false));
    }

    #[test]
    fn young_is_neither_old_nor_of_the_future() {
        let at = |ago: i64| time::iso_ms(time::now_ms().saturating_add_signed(-ago * 1000));
        assert!(is_recent(&at(10)));
        assert!(!is_recent(&at(400)) && !is_recent(&at(-400)) && !is_recent("yesterday"));
    }
}
