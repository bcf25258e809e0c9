//! Manifests of a session, some of which may be damaged.

use super::{Recorded, Result, Session, SessionError, SnapshotList};
use crate::manifest::{ManifestBody, SnapshotId};

impl Session {
    /// A manifest; `None` if it is damaged, missing, or was dropped.
    pub(crate) fn sheet_if_readable(
        &self,
        record: &SnapshotList,
        id: &SnapshotId,
    ) -> Result<Option<ManifestBody>> {
        match self.sheet(record, id) {
            Ok(sheet) => Ok(Some(sheet)),
            Err(SessionError::Manifest { .. } | SessionError::Lost { .. } | SessionError::Thinned { .. }) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Manifests of all snapshots that were not dropped; `None` for one that is damaged or missing.
    pub(crate) fn sheets<'a>(
        &'a self,
        record: &'a SnapshotList,
    ) -> impl Iterator<Item = (&'a Recorded, Result<Option<ManifestBody>>)> {
        let there = record.snapshots.iter().filter(|recorded| !recorded.thinned);
        there.map(|recorded| (recorded, self.sheet_if_readable(record, &recorded.id)))
    }

    /// The last numbered snapshot that can be read.
    pub(crate) fn newest_sheet(&self, record: &SnapshotList) -> Result<Option<ManifestBody>> {
        for recorded in record.snapshots.iter().rev().filter(|recorded| !recorded.thinned) {
            if matches!(recorded.id, SnapshotId::Number(_))
                && let Some(sheet) = self.sheet_if_readable(record, &recorded.id)?
            {
                return Ok(Some(sheet));
            }
        }
        Ok(None)
    }
}
