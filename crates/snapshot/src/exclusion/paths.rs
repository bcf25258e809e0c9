//! A sorted set of paths in one allocation: an index may hold a million.

use crate::bytes::{Malformed, Reader, Writer};

/// Paths in strictly rising order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PathSet {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl PathSet {
    /// Add a path that is greater than all others. False when it does not fit.
    #[must_use]
    pub(super) fn push(&mut self, path: &[u8]) -> bool {
        let Ok(end) = u32::try_from(self.bytes.len() + path.len()) else { return false };
        self.bytes.extend_from_slice(path);
        self.ends.push(end);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| self.get(number))
    }

    fn get(&self, number: usize) -> &[u8] {
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[from..self.ends[number] as usize]
    }

    /// Fold to lower case, for a case-insensitive repository.
    pub(super) fn fold(&mut self) {
        self.bytes.make_ascii_lowercase();
        let mut paths: Vec<Vec<u8>> = self.iter().map(<[u8]>::to_vec).collect();
        paths.sort_unstable();
        paths.dedup();
        *self = PathSet::from_sorted(paths.iter().map(Vec::as_slice));
    }

    /// Build from paths in rising order that come from another set, so they fit.
    pub(super) fn from_sorted<'a>(paths: impl Iterator<Item = &'a [u8]>) -> PathSet {
        let mut set = PathSet::default();
        for path in paths {
            if !set.push(path) {
                break;
            }
        }
        set
    }

    pub(super) fn contains(&self, path: &[u8]) -> bool {
        let at = self.first_from(|other| other < path);
        at < self.len() && self.get(at) == path
    }

    /// Whether any path is below the directory `dir`.
    pub(super) fn any_below(&self, dir: &[u8]) -> bool {
        let below = |path: &[u8]| path.strip_prefix(dir).and_then(|rest| rest.first().copied());
        let at = self.first_from(|other| match below(other) {
            Some(byte) => byte < b'/',
            None => other <= dir,
        });
        at < self.len() && below(self.get(at)) == Some(b'/')
    }

    /// Index of the first path for which `smaller` does not hold.
    fn first_from(&self, smaller: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if smaller(self.get(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        self.iter().for_each(|path| out.bytes(path));
    }

    pub(super) fn decode(from: &mut Reader<'_>) -> Result<PathSet, Malformed> {
        let mut set = PathSet::default();
        let mut last: &[u8] = b"";
        let paths = from.list(relative)?;
        for path in paths {
            if path <= last || !set.push(path) {
                return Err(Malformed("the order of tracked paths"));
            }
            last = path;
        }
        Ok(set)
    }
}

/// Read a relative path: not empty, no empty component, no `.` or `..`.
pub(super) fn relative<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let path = from.bytes()?;
    let odd = |part: &[u8]| part.is_empty() || part == b"." || part == b"..";
    if path.contains(&0) || path.split(|byte| *byte == b'/').any(odd) {
        return Err(Malformed("a path of frozen rules"));
    }
    Ok(path)
}

pub(super) fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
