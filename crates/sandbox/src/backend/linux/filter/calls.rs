//! Tables of the filter, by architecture.

#[cfg(target_arch = "x86_64")]
pub(super) const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const AUDIT_ARCH: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the system call filter is written for x86-64 and aarch64 only");

/// First number this table does not know: `setxattrat` and everything after it. Numbers from 424 on are common to all
/// architectures.
pub(super) const FIRST_UNKNOWN: u32 = 463;

pub(super) const CLONE_NEWTIME: u32 = 0x80;
/// Flags of the cgroup, uts, ipc, user, pid, net and mount namespaces.
pub(super) const CLONE_NEW: u32 =
    0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000 | 0x0002_0000;
pub(super) const MSG_FASTOPEN: u32 = 0x2000_0000;
pub(super) const IPPROTO_MPTCP: libc::c_int = 262;

/// Calls always refused: they reach outside the process's own files and memory, or into the kernel.
pub(super) const REFUSED: &[libc::c_long] = &[
    // mounts
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_setns,
    // files by handle, past every path check
    libc::SYS_open_by_handle_at,
    // asynchronous calls that no filter sees
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // keyrings
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // kernel attack surface
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // the machine
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    // Reading the clock's state is refused with setting it: which of the two it is depends on a struct in memory.
    libc::SYS_adjtimex,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Calls answered as if the kernel were older, so that libraries fall back to a call that can be inspected.
pub(super) const NOT_THERE: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_fchmodat2,
    // Segments for 16-bit and 32-bit code, which cannot run here; kernels are built without it, too.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Calls that make files in memory, which a process can hide by leaving them unreceived in a socket.
pub(super) const MEMFD: &[libc::c_long] = &[libc::SYS_memfd_create, libc::SYS_memfd_secret];

/// System V and POSIX message queues, semaphores and shared memory, which live outside the file system.
pub(super) const SHARED_IPC: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls whose first argument names the process or thread to be scheduled.
pub(super) const SCHEDULING: &[libc::c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// Sending calls and the index of their flags.
pub(super) const SENDING: &[(libc::c_long, u32)] =
    &[(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

/// Socket options, by level, that route packets past the address they are for: source routes and devices. They would
/// make the check of an address meaningless.
pub(super) const DETOURS: &[(libc::c_int, &[libc::c_int])] = &[
    (libc::IPPROTO_IP, &[libc::IP_OPTIONS]),
    (libc::IPPROTO_IPV6, &[libc::IPV6_RTHDR, libc::IPV6_2292PKTOPTIONS]),
    (libc::SOL_SOCKET, &[libc::SO_BINDTODEVICE, libc::SO_BINDTOIFINDEX]),
];

/// Opening calls and the index of their flags.
pub(super) const OPENING: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];
/// Opening calls whose flags are in memory or fixed, and those that change the working directory.
pub(super) const OPENING_OTHERS: &[libc::c_long] = &[
    libc::SYS_openat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    libc::SYS_chdir,
    libc::SYS_fchdir,
];
/// Value of `O_PATH`, the same on both architectures.
pub(super) const O_PATH: u32 = 0o10_000_000;
/// Value of `SECCOMP_FILTER_FLAG_NEW_LISTENER`.
pub(super) const NEW_LISTENER: u32 = 1 << 3;

/// Calls that change owners, modes, times and extended attributes.
pub(super) const METADATA: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

pub(super) const RENAMES: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    libc::SYS_renameat2,
];

/// Calls that remove a name of a file.
pub const REMOVALS: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
];

/// Calls that change the mode of a named file.
pub const MODES: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmodat,
];

/// Calls that start programs, and that make, remove and rename what is in a directory.
pub(super) const CHANGES: &[libc::c_long] = &[
    libc::SYS_execve,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    libc::SYS_mknodat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    libc::SYS_linkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    libc::SYS_renameat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_truncate,
    libc::SYS_bind,
];
/// Value of `AT_FDCWD`, as the filter sees it.
pub(super) const AT_FDCWD: u32 = 0xffff_ff9c;

/// First and last ioctl request about network interfaces, which a socket of any family answers: names, hardware
/// addresses, IPv4 addresses.
pub(super) const INTERFACES: (u32, u32) = (0x8910, 0x89ff);

/// Requests (ioctl) that type into a terminal, or change a file through a descriptor opened for reading.
pub(super) const IOCTLS: &[u32] = &[
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
    0x541d,      // TIOCCONS
    0x5423,      // TIOCSETD: line disciplines are drivers
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4008_7602, // FS_IOC_SETVERSION
    0x4004_7602, // FS_IOC32_SETVERSION
    0x4008_6604, // EXT4_IOC_SETVERSION
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0xc050_6617, // FS_IOC_ADD_ENCRYPTION_KEY
    0x5000_9401, // BTRFS_IOC_SNAP_CREATE
    0x5000_940e, // BTRFS_IOC_SUBVOL_CREATE
    0x5000_940f, // BTRFS_IOC_SNAP_DESTROY
    0x5000_9417, // BTRFS_IOC_SNAP_CREATE_V2
    0x5000_9418, // BTRFS_IOC_SUBVOL_CREATE_V2
    0x4008_941a, // BTRFS_IOC_SUBVOL_SETFLAGS
    0xc0c8_9425, // BTRFS_IOC_SET_RECEIVED_SUBVOL
    0x5000_943f, // BTRFS_IOC_SNAP_DESTROY_V2
];
