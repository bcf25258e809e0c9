//! New namespaces and mounts: the ways to take the sandbox apart from inside.

use crate::harness::fixture::helper;
use crate::harness::{Attack, attack, attacks};

/// `EPERM` and `ENOSPC`: some systems forbid user namespaces to all users.
fn in_namespace(steps: &'static str) -> Attack {
    attack(steps).lacks(&["EPERM", "ENOSPC"])
}

attacks! {
    unshare:
        in_namespace("unshare user"),
        in_namespace("unshare user+mnt"),
        in_namespace("unshare user+pid"),
        in_namespace("unshare user+net"),
        in_namespace("unshare user+ipc"),
        in_namespace("unshare user+uts"),
        in_namespace("unshare user+cgroup");
    clone:
        in_namespace("clone user"),
        in_namespace("clone user+mnt"),
        in_namespace("clone user+net");
    clone_with_high_bits:
        in_namespace("clone user wide"),
        in_namespace("clone user+pid+net wide");
    clone3:
        in_namespace("clone3 user"),
        in_namespace("clone3 user+mnt");
    setns:
        in_namespace("setns {pid} user").against(helper("victim {secret} {out} apart")),
        in_namespace("setns-pidfd {pid} user+mnt+net").against(helper("victim {secret} {out} apart")),
        attack("setns-reach");
    uid_map: in_namespace("unshare user , uid-map");
    chroot:
        in_namespace("unshare user , chroot {out}"),
        in_namespace("unshare user , chroot / , read {out}/secret").leaks();
    pivot_root: in_namespace("unshare user+mnt , pivot {prj}");
    mount:
        in_namespace("unshare user+mnt , mount-tmpfs {prj}"),
        in_namespace("unshare user+mnt , bind {out} {prj}/m , read {prj}/m/secret").leaks(),
        attack("mount-reach");
    umount:
        attack("umount-reach"),
        in_namespace("unshare user+mnt , mount-tmpfs {prj} , umount {prj}");
    new_mount_calls:
        in_namespace("unshare user+mnt , fsopen"),
        in_namespace("unshare user+mnt , fspick /"),
        in_namespace("unshare user+mnt , open-tree {out} secret").leaks(),
        in_namespace("unshare user+mnt , move-mount {out} {prj}/m"),
        in_namespace("unshare user+mnt , bind {ro} {ro} , mount-setattr {ro}");
    open_tree_attr: attack("reach-call 467");
    read_only_mounts_stay:
        in_namespace("unshare user+mnt , bind {ro} {ro} , remount {ro}"),
        attack("remount {ro} , write {ro}/file").changes(),
        attack("remount / , write {out}/target").changes(),
        attack("umount {ro} , write {ro}/file").changes(),
        attack("umount / , read {out}/secret").leaks(),
        attack("umount /tmp , read {out}/secret").leaks().also_in_tmp(),
        attack("umount {prj} , write {ro}/file").changes();
}
