//! The accounts against a model: random writers, kills, collections and damage. Invariants after each step: committed and
//! reserved bytes stay within the limit, the disk does too, and a writer is refused only if the bytes on disk and those
//! of live writers leave no room.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::hash::content_hash;
use crate::store::{ObjectKey, StoreWriter, WriteOptions};

const LIMIT: u64 = 4 << 20;
/// Space of a writer's pack and index besides its objects, and unused reservation steps.
const SLACK: u64 = 32 << 10;

/// Incompressible bytes, all different.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn quota(owner: Owner) -> Quota {
    Quota { owner, total: LIMIT, checkpoints: LIMIT / 2, beside: vec!["beside".to_owned()] }
}

/// A simulated process: its own store on the shared folder.
struct Process {
    store: Store,
}

impl Process {
    fn new(dir: &Path, owner: Owner) -> Process {
        Process { store: Store::open(dir).unwrap().with_quota(quota(owner)) }
    }
}

#[derive(Clone, Debug)]
enum Action {
    /// Write this many objects of this size, and publish.
    Write {
        owner: bool,
        objects: u8,
        size: u16,
    },
    /// The same, killed before publishing.
    Kill {
        owner: bool,
        objects: u8,
        size: u16,
    },
    /// The same, dropped before publishing.
    GiveUp {
        objects: u8,
        size: u16,
    },
    /// A live writer holds a reservation during the next steps.
    Hold {
        size: u16,
    },
    /// The held writer publishes.
    Release,
    /// Collect everything but the newest objects.
    Collect {
        keep: u8,
    },
    Damage,
    /// A file beside the store grows.
    Beside {
        size: u16,
    },
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (any::<bool>(), 1..20u8, 1..60_000u16).prop_map(|(owner, objects, size)| Action::Write { owner, objects, size }),
        2 => (any::<bool>(), 1..20u8, 1..60_000u16).prop_map(|(owner, objects, size)| Action::Kill { owner, objects, size }),
        1 => (1..20u8, 1..60_000u16).prop_map(|(objects, size)| Action::GiveUp { objects, size }),
        1 => (1..60_000u16).prop_map(|size| Action::Hold { size }),
        1 => Just(Action::Release),
        1 => (0..40u8).prop_map(|keep| Action::Collect { keep }),
        1 => Just(Action::Damage),
        1 => (1..60_000u16).prop_map(|size| Action::Beside { size }),
    ]
}

struct World {
    dir: tempfile::TempDir,
    seed: u64,
    keys: Vec<ObjectKey>,
}

impl World {
    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// Bytes on disk, including temporary files.
    fn on_disk(&self) -> u64 {
        ["store", "beside"]
            .iter()
            .map(|name| nono_sys::fs::disk_bytes(&self.dir.path().join(name)).unwrap())
            .sum()
    }

    fn put(
        &mut self,
        writer: &StoreWriter<'_>,
        objects: u8,
        size: u16,
    ) -> Result<Vec<ObjectKey>, StoreError> {
        let mut keys = Vec::new();
        let mut appender = writer.appender()?;
        let mut refused = None;
        for _ in 0..objects {
            self.seed += 1;
            let bytes = noise(self.seed, usize::from(size));
            let key = ObjectKey::from(content_hash(&bytes));
            match appender.put(key, &bytes) {
                Ok(_) => keys.push(key),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        appender.finish()?;
        refused.map_or(Ok(keys), Err)
    }

    /// Check that a refusal is right: a count leaves no room besides what the writer `held` already.
    fn judge(error: &StoreError, held: u64, store: &Store) {
        let StoreError::OverBudget { needed, .. } = error else { panic!("{error}") };
        let balance = store.recount().unwrap().unwrap();
        let short =
            |taken: u64, limit: u64| taken + balance.reserved + held + needed + SLACK > limit - spare(limit);
        let checkpoint = store.quota.as_ref().unwrap().owner == Owner::Checkpoint;
        assert!(
            short(balance.committed, LIMIT) || checkpoint && short(balance.checkpoints, LIMIT / 2),
            "refused {needed}, held {held}: {balance:?}"
        );
    }
}

fn owner(checkpoint: bool) -> Owner {
    if checkpoint { Owner::Checkpoint } else { Owner::Session }
}

/// End a writer as a kill does: its temporary files and its reservation stay, its locks are released.
fn kill(writer: StoreWriter<'_>) {
    writer.die();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_limit_holds_and_no_writer_is_refused_while_there_is_room(actions in prop::collection::vec(action(), 1..40)) {
        let mut world = World { dir: tempfile::tempdir().unwrap(), seed: 0, keys: Vec::new() };
        std::fs::create_dir(world.dir.path().join("beside")).unwrap();
        let holder = Process::new(&world.store(), Owner::Session);
        let mut held: Option<(StoreWriter<'_>, Vec<ObjectKey>)> = None;
        let mut beside = 0u64;
        for action in actions {
            match action {
                Action::Write { owner: checkpoint, objects, size } => {
                    let process = Process::new(&world.store(), owner(checkpoint));
                    let writer = process.store.writer(WriteOptions::default()).unwrap();
                    match world.put(&writer, objects, size) {
                        Ok(keys) => {
                            let _published = writer.publish().unwrap();
                            world.keys.extend(keys);
                        }
                        Err(error) => {
                            let held = writer.spent();
                            drop(writer);
                            World::judge(&error, held, &process.store);
                        }
                    }
                }
                Action::Kill { owner: checkpoint, objects, size } => {
                    let process = Process::new(&world.store(), owner(checkpoint));
                    let writer = process.store.writer(WriteOptions::default()).unwrap();
                    drop(world.put(&writer, objects, size));
                    kill(writer);
                }
                Action::GiveUp { objects, size } => {
                    let process = Process::new(&world.store(), Owner::Session);
                    let writer = process.store.writer(WriteOptions::default()).unwrap();
                    drop(world.put(&writer, objects, size));
                }
                Action::Hold { size } if held.is_none() => {
                    let writer = holder.store.writer(WriteOptions::default()).unwrap();
                    if let Ok(keys) = world.put(&writer, 3, size) {
                        held = Some((writer, keys));
                    }
                }
                Action::Release => {
                    if let Some((writer, keys)) = held.take() {
                        let _published = writer.publish().unwrap();
                        world.keys.extend(keys);
                    }
                }
                Action::Collect { keep } if held.is_none() => {
                    let from = world.keys.len().saturating_sub(usize::from(keep));
                    let live: BTreeSet<ObjectKey> = world.keys.split_off(from).into_iter().collect();
                    let store = Store::open(&world.store()).unwrap();
                    store.gc(&|key| live.contains(&key)).unwrap();
                    store.recount().unwrap();
                    world.keys = live.into_iter().collect();
                }
                Action::Damage => {
                    let books = world.store().join("ledger/books");
                    if books.exists() {
                        std::fs::write(&books, b"{}").unwrap();
                    }
                }
                Action::Beside { size } => {
                    let store = Store::open(&world.store()).unwrap().with_quota(quota(Owner::Session));
                    // Writers do not control what grows beside the store, but it counts.
                    if world.on_disk() + u64::from(size) + (8 << 10) < LIMIT - spare(LIMIT)
                        && store.room().unwrap() > u64::from(size) + (8 << 10)
                    {
                        beside += 1;
                        std::fs::write(world.dir.path().join(format!("beside/{beside}")), noise(beside, usize::from(size))).unwrap();
                        store.recount().unwrap();
                    }
                }
                Action::Hold { .. } | Action::Collect { .. } => {}
            }
            if let Some(balance) = Store::open(&world.store()).unwrap().balance().unwrap() {
                prop_assert!(balance.committed + balance.reserved <= LIMIT, "{balance:?}");
            }
            prop_assert!(world.on_disk() <= LIMIT, "{} on disk", world.on_disk());
        }
        // All published objects are there, whatever was killed or refused meanwhile.
        let store = Store::open(&world.store()).unwrap();
        for key in &world.keys {
            prop_assert!(store.read(*key).is_ok());
        }
        drop(held);
    }
}

/// Writers in separate processes get what they need, as long as there is room for all of them.
#[test]
fn writers_at_once_are_not_refused_while_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let processes: Vec<Process> = (0..32).map(|_| Process::new(&store, Owner::Checkpoint)).collect();
    let writers: Vec<_> =
        processes.iter().map(|process| process.store.writer(WriteOptions::default()).unwrap()).collect();
    // 32 times 50 kB are less than the 2 MB that checkpoints have.
    std::thread::scope(|scope| {
        for (number, writer) in writers.into_iter().enumerate() {
            scope.spawn(move || {
                let mut appender = writer.appender().unwrap();
                for part in 0..5 {
                    let bytes = noise(number as u64 * 100 + part + 1, 9_000);
                    appender.put(ObjectKey::from(content_hash(&bytes)), &bytes).unwrap();
                }
                appender.finish().unwrap();
                let _published = writer.publish().unwrap();
            });
        }
    });
    let balance = processes[0].store.recount().unwrap().unwrap();
    assert_eq!(balance.reserved, 0);
    assert!(balance.committed <= LIMIT);
}

/// A count includes the files of a dead writer; removing them triggers another count.
#[test]
fn what_a_dead_writer_left_counts_only_until_it_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let process = Process::new(&dir.path().join("store"), Owner::Session);
    let bytes = noise(1, 3 << 20);
    let writer = process.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    appender.put(ObjectKey::from(content_hash(&bytes)), &bytes).unwrap();
    appender.finish().unwrap();
    kill(writer);
    assert!(process.store.room().unwrap() < 1 << 20);
    let writer = process.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    appender.put(ObjectKey::from(content_hash(&bytes)), &bytes).unwrap();
    appender.finish().unwrap();
    let _published = writer.publish().unwrap();
}

#[test]
fn what_a_dead_writer_reserved_falls_with_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let process = Process::new(&path, Owner::Session);
    let writer = process.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    let bytes = noise(1, 3 << 20);
    appender.put(ObjectKey::from(content_hash(&bytes)), &bytes).unwrap();
    appender.finish().unwrap();
    // While it lives, another writer has only the rest.
    let other = Process::new(&path, Owner::Session);
    let second = other.store.writer(WriteOptions::default()).unwrap();
    let mut appender = second.appender().unwrap();
    let more = noise(2, 2 << 20);
    let refused = appender.put(ObjectKey::from(content_hash(&more)), &more);
    assert!(matches!(refused, Err(StoreError::OverBudget { .. })), "{refused:?}");
    appender.finish().unwrap();
    drop(second);
    kill(writer);
    // Its temporary files are removed by the first writer that is alone, its reservation by the first that asks.
    let third = other.store.writer(WriteOptions::default()).unwrap();
    let mut appender = third.appender().unwrap();
    appender.put(ObjectKey::from(content_hash(&more)), &more).unwrap();
    appender.finish().unwrap();
    let _published = third.publish().unwrap();
}
