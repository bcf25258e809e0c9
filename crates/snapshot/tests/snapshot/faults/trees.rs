//! The two states used by the scenarios, with every kind of difference, and an exact listing of a tree.

use nono_testkit::noise;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A file above 4 MiB is a single object in the store.
const BIG: usize = (4 << 20) + 70_000;

pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::create(path).unwrap().write_all(bytes.as_ref()).unwrap();
}

pub(crate) fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The first state.
pub(crate) fn make_old(root: &Path) {
    write(&root.join("keep.txt"), "kept");
    write(&root.join("replace.txt"), "old content\n".repeat(40));
    write(&root.join("gone.txt"), "will be deleted");
    write(&root.join("dir-to-file/inner.txt"), "inside a directory");
    write(&root.join("file-to-dir"), "a file that becomes a directory");
    write(&root.join("hard-1"), "linked");
    fs::hard_link(root.join("hard-1"), root.join("hard-2")).unwrap();
    write(&root.join("apart-1"), "same");
    write(&root.join("apart-2"), "same");
    symlink("keep.txt", root.join("link")).unwrap();
    symlink("nowhere", root.join("link-to-file")).unwrap();
    write(&root.join("locked/in.txt"), "in a directory without w");
    write(&root.join("secret"), "an unreadable file");
    write(&root.join("sub/deep/x.txt"), "deep");
    write(&root.join("big.bin"), noise(BIG, 1));
    fs::create_dir(root.join("empty")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    // Not every filesystem takes it; then both sides lack it.
    let _ = rustix::fs::setxattr(root.join("keep.txt"), "user.note", b"1", rustix::fs::XattrFlags::empty());
    mode(&root.join("locked"), 0o555);
    mode(&root.join("secret"), 0o000);
}

/// The first state without the large file, where another test has it: hashing it again and again takes most of the time.
pub(crate) fn make_small_old(root: &Path) {
    make_old(root);
    fs::remove_file(root.join("big.bin")).unwrap();
}

/// The second state, made from the first.
pub(crate) fn make_new(root: &Path) {
    write(&root.join("replace.txt"), "new content\n".repeat(50));
    fs::remove_file(root.join("gone.txt")).unwrap();
    fs::remove_dir_all(root.join("dir-to-file")).unwrap();
    write(&root.join("dir-to-file"), "a file now");
    fs::remove_file(root.join("file-to-dir")).unwrap();
    write(&root.join("file-to-dir/below/y.txt"), "a directory now");
    fs::remove_file(root.join("hard-2")).unwrap();
    write(&root.join("hard-2"), "no longer linked");
    fs::remove_file(root.join("apart-2")).unwrap();
    fs::hard_link(root.join("apart-1"), root.join("apart-2")).unwrap();
    fs::remove_file(root.join("link")).unwrap();
    symlink("elsewhere", root.join("link")).unwrap();
    fs::remove_file(root.join("link-to-file")).unwrap();
    write(&root.join("link-to-file"), "was a link");
    mode(&root.join("locked"), 0o755);
    write(&root.join("locked/in.txt"), "changed in a directory without w");
    write(&root.join("locked/more.txt"), "added");
    mode(&root.join("locked"), 0o555);
    fs::remove_dir(root.join("empty")).unwrap();
    mode(&root.join("sub/deep/x.txt"), 0o755);
    if root.join("big.bin").exists() {
        let mut big = noise(BIG, 1);
        big[2_000_000] ^= 0x55;
        write(&root.join("big.bin"), big);
    }
    write(&root.join("new.txt"), "only in the second state");
    write(&root.join("newdir/a"), "a");
    symlink("/", root.join("newdir/up")).unwrap();
    fs::remove_file(root.join("pipe")).unwrap();
    let _ = rustix::fs::setxattr(root.join("keep.txt"), "user.note", b"2", rustix::fs::XattrFlags::empty());
}

/// An entry according to `stat`, `readlink` and its bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Item {
    mode: u32,
    mtime: (i64, i64),
    content: Vec<u8>,
    xattrs: Vec<(String, Vec<u8>)>,
    /// The first name of its inode.
    first: PathBuf,
}

impl Item {
    /// The same at another time.
    pub(crate) fn timeless(&self) -> Item {
        Item { mtime: (0, 0), ..self.clone() }
    }

    pub(crate) fn same_bytes(&self, other: &Item) -> bool {
        self.content == other.content && self.mode & 0o170_000 == other.mode & 0o170_000
    }
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = String::from_utf8_lossy(&self.content[..self.content.len().min(30)]).into_owned();
        let (mode, time, length, first) = (self.mode, self.mtime, self.content.len(), self.first.display());
        write!(f, "{mode:o} {time:?} {length} bytes {start:?} {:?} ={first}", self.xattrs)
    }
}

pub(crate) type Listing = BTreeMap<PathBuf, Item>;

/// Everything in a tree, the tree itself included.
pub(crate) fn list(root: &Path) -> Listing {
    let mut listing = Listing::new();
    let mut inodes: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    let mut paths = Vec::new();
    while let Some(path) = waiting.pop() {
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        paths.push(path);
    }
    paths.sort();
    for path in paths {
        let meta = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_owned();
        let content = if meta.is_file() {
            fs::read(&path).unwrap()
        } else if meta.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        let first = inodes.entry(meta.ino()).or_insert_with(|| name.clone()).clone();
        let mtime = (meta.mtime(), meta.mtime_nsec());
        let xattrs = if meta.is_file() { xattrs(&path) } else { Vec::new() };
        listing.insert(name, Item { mode: meta.mode(), mtime, content, xattrs, first });
    }
    listing
}

fn xattrs(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut value = [0; 64];
    match rustix::fs::lgetxattr(path, "user.note", &mut value[..]) {
        Ok(length) => vec![("user.note".to_owned(), value[..length].to_vec())],
        Err(_) => Vec::new(),
    }
}

/// Differences as text; empty if there are none.
pub(crate) fn differences(is: &Listing, should: &Listing) -> Vec<String> {
    let mut all: Vec<&PathBuf> = is.keys().chain(should.keys()).collect();
    all.sort();
    all.dedup();
    let differs = all.into_iter().filter(|path| is.get(*path) != should.get(*path));
    differs
        .map(|path| format!("{}: is {:?}, should be {:?}", path.display(), is.get(path), should.get(path)))
        .collect()
}

#[track_caller]
pub(crate) fn assert_same(is: &Listing, should: &Listing, when: &str) {
    let differences = differences(is, should);
    assert!(differences.is_empty(), "{when}:\n{}", differences.join("\n"));
}
