//! Hashes a whole file while its chunks are hashed: a second thread does one of the two.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use super::large::feed;
use super::spans::SpanPiece;
use crate::hash::ContentHasher;

/// Number of pieces queued for hashing: enough that neither thread waits for long.
const WAITING: usize = 3;

/// A piece sent to the other thread.
pub(super) enum Owned {
    Data(Vec<u8>),
    Zeros(u64),
}

/// Hashes a file piece by piece.
#[allow(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub(super) enum Hashing<'scope> {
    Here(ContentHasher),
    Beside(SyncSender<Owned>, ScopedJoinHandle<'scope, ContentHasher>),
}

impl<'scope> Hashing<'scope> {
    pub(super) fn begin(scope: &'scope Scope<'scope, '_>, size: u64) -> Hashing<'scope> {
        let (sender, receiver) = sync_channel(WAITING);
        let work = move || {
            let mut hasher = ContentHasher::new(size);
            for piece in receiver {
                match &piece {
                    Owned::Data(bytes) => feed(&mut hasher, SpanPiece::Data(bytes)),
                    Owned::Zeros(len) => feed(&mut hasher, SpanPiece::Zeros(*len)),
                }
            }
            hasher
        };
        // If no thread can be started, this one does both.
        match Builder::new().name("nono-hash".to_owned()).spawn_scoped(scope, work) {
            Ok(thread) => Hashing::Beside(sender, thread),
            Err(_) => Hashing::Here(ContentHasher::new(size)),
        }
    }

    pub(super) fn feed(&mut self, piece: SpanPiece<'_>) {
        match self {
            Hashing::Here(hasher) => feed(hasher, piece),
            Hashing::Beside(sender, _) => {
                let owned = match piece {
                    SpanPiece::Data(bytes) => Owned::Data(bytes.to_vec()),
                    SpanPiece::Zeros(len) => Owned::Zeros(len),
                };
                // The thread ends early only by a panic, which is seen at the end.
                let _ = sender.send(owned);
            }
        }
    }

    pub(super) fn finish(self) -> ContentHasher {
        match self {
            Hashing::Here(hasher) => hasher,
            Hashing::Beside(sender, thread) => {
                drop(sender);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}
