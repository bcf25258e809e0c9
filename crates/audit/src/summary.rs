//! Summary of events into the record of their session. Writer and verifier share this code, so that they always agree.

use std::collections::HashMap;

use crate::event::{AuditEvent, Decision, Denial, Network, Phase, Seal, SessionEnded, SessionStarted};
use crate::hash::{ALGORITHM, Digest};
use crate::log::EVENTS;
use crate::record_format::Chain;
use crate::session::{Attestation, EventCounts, Integrity, NetworkEntry, SessionRecord};
use crate::sign::PublicKey;
use nono_sys::time::iso_ms as iso;

/// Maximum number of network events in the record of a session; the log has them all.
const MAX_NETWORK: usize = 1000;
/// Maximum total size of these events, so that closing a log on a full disk needs no more than the reserved space.
const MAX_NETWORK_BYTES: usize = 192 << 10;
const MAX_ROOTS: usize = 1000;
/// Maximum number of kinds. A writer has at most 1001; more are counted as one, which can only be too few.
const MAX_KINDS: usize = 4096;

/// Summary of the events so far.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    started: Option<SessionStarted>,
    ended: Option<SessionEnded>,
    seal: Option<Seal>,
    snapshots: u32,
    roots: Vec<String>,
    network: Vec<NetworkEntry>,
    network_bytes: usize,
    counts: EventCounts,
    /// Number of tunnels that were opened, and refused after that.
    refused_open: u64,
    denials: HashMap<Digest, u64>,
}

impl Summary {
    pub fn started(&self) -> Option<&SessionStarted> {
        self.started.as_ref()
    }

    pub fn ended(&self) -> Option<&SessionEnded> {
        self.ended.as_ref()
    }

    pub fn seal(&self) -> Option<&Seal> {
        self.seal.as_ref()
    }

    pub fn counts(&self) -> EventCounts {
        let denials = self.denials.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let mut counts = EventCounts { denials, ..self.counts.clone() };
        counts.network.allowed = counts.network.allowed.saturating_sub(self.refused_open);
        counts
    }

    pub fn add(&mut self, event: &AuditEvent) {
        match event {
            AuditEvent::SessionStarted(started) => {
                self.started.get_or_insert_with(|| started.clone());
            }
            AuditEvent::SessionEnded(ended) => self.ended = Some(ended.clone()),
            AuditEvent::CapabilityDecision(answer) => self.counts.decisions.add(answer.decision, 1),
            AuditEvent::UrlOpen(opened) => self.counts.urls.add(opened.decision, 1),
            AuditEvent::Denial(denial) => self.add_denial(denial),
            AuditEvent::Network(event) => self.add_network(event),
            AuditEvent::Snapshot(snapshot) => {
                self.snapshots = self.snapshots.saturating_add(1);
                if self.roots.len() < MAX_ROOTS && snapshot.merkle_root.len() <= 128 {
                    self.roots.push(snapshot.merkle_root.clone());
                }
            }
            AuditEvent::Seal(seal) => self.seal = Some(seal.clone()),
            AuditEvent::Restore(_)
            | AuditEvent::Checkpoint(_)
            | AuditEvent::AgentPrompt(_)
            | AuditEvent::AgentCall(_)
            | AuditEvent::BackendError(_)
            | AuditEvent::Warning(_) => {}
        }
    }

    /// Adds a denial. Its count is the sum so far, so the last one of a kind counts.
    fn add_denial(&mut self, denial: &Denial) {
        // A key that cannot be serialised was not written either.
        let key = serde_json::to_vec(&denial.what).unwrap_or_default();
        let key = Digest::of(b"", &[&key]);
        let full = self.denials.len() >= MAX_KINDS && !self.denials.contains_key(&key);
        self.denials.insert(if full { Digest::ZERO } else { key }, denial.count);
    }

    fn add_network(&mut self, event: &Network) {
        // Each tunnel counts once, at its opening, since the log may break off before its end.
        if event.phase == Some(Phase::Ended) {
            match event.decision {
                Decision::Allowed => return,
                Decision::Denied => self.refused_open = self.refused_open.saturating_add(event.count),
            }
        }
        self.counts.network.add(event.decision, event.count);
        if event.count != 1 || self.network.len() >= MAX_NETWORK || self.network_bytes >= MAX_NETWORK_BYTES {
            return;
        }
        let entry = NetworkEntry::from(event);
        self.network_bytes += serde_json::to_vec(&entry).map_or(0, |bytes| bytes.len());
        self.network.push(entry);
    }

    /// Record of a session that has started.
    pub fn opening(&self) -> Option<SessionRecord> {
        let started = self.started.clone()?;
        Some(SessionRecord {
            session_id: started.session_id,
            started: iso(started.time_ms),
            command: started.command,
            executable_identity: started.executable,
            tracked_paths: started.tracked_paths,
            name: started.name,
            version: started.version,
            pid: started.pid,
            workdir: started.workdir,
            policy_digest: started.policy_digest,
            network: started.network,
            ..SessionRecord::default()
        })
    }

    /// Record of a session that has ended; `None` without its first and last event.
    pub fn closing(&self, chain: &Chain, ledger_sequence: Option<u64>) -> Option<SessionRecord> {
        let ended = self.ended.clone()?;
        let integrity = Integrity {
            hash_algorithm: ALGORITHM.to_owned(),
            event_count: chain.count(),
            chain_head: chain.head()?,
            merkle_root: chain.root()?,
        };
        Some(SessionRecord {
            ended: Some(iso(ended.time_ms)),
            snapshot_count: self.snapshots,
            exit_code: Some(ended.exit_code).filter(|_| !ended.interrupted),
            merkle_roots: self.roots.clone(),
            network_events: self.network.clone(),
            audit_event_count: chain.count(),
            audit_integrity: Some(integrity),
            audit_attestation: self.attestation(),
            signal: ended.signal,
            limit: ended.limit,
            stopped: ended.stopped,
            interrupted: ended.interrupted,
            counts: self.counts(),
            sealed: self.seal.is_some(),
            ledger_sequence,
            ..self.opening()?
        })
    }

    fn attestation(&self) -> Option<Attestation> {
        let signature = self.seal.as_ref()?.signature.as_ref()?;
        Some(Attestation {
            predicate_type: "nono.audit.seal.alpha".to_owned(),
            key_id: PublicKey::parse(&signature.public_key)?.id().hex(),
            public_key: signature.public_key.clone(),
            bundle_filename: EVENTS.to_owned(),
        })
    }
}
