//! The user's own `.git`: left alone while it is there, brought back whole when it is gone.

use super::kit::Kit;
use super::project::split;
use nono_testkit::oracle::{Oracle, look, same};

fn repository() -> Kit {
    let kit = Kit::project();
    kit.bare(
        "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
         GIT_COMMITTER_EMAIL=a@b; git init -q .; git add -A; git commit -qm first",
    );
    kit
}

fn git(kit: &Kit) -> Oracle {
    look(&kit.tree().join(".git"))
}

#[test]
fn a_git_that_is_there_is_left_alone() {
    let kit = repository();
    kit.take();
    let before = kit.look();
    kit.bare(
        "git -c user.name=a -c user.email=a@b commit -qm second --allow-empty; git branch other; rm src/main.rs",
    );
    let theirs = git(&kit);
    kit.restore(&["1"]).ok();
    same(&theirs, &git(&kit));
    same(&split(&before, &[".git"]).1, &split(&kit.look(), &[".git"]).1);
    kit.bare("test \"$(git log --format=%s | head -1)\" = second");
    kit.restore(&["1", "--with-git"]).ok();
    same(&before, &kit.look());
    kit.bare("test \"$(git log --format=%s | head -1)\" = first; git fsck --strict");
}

#[test]
fn a_git_that_was_deleted_comes_back_whole() {
    let kit = repository();
    kit.take();
    let before = kit.look();
    kit.bare("rm -rf .git src");
    kit.restore(&["1"]).ok();
    same(&before, &kit.look());
    kit.bare("git fsck --strict; git status --porcelain | grep . && exit 1 || true");
}
