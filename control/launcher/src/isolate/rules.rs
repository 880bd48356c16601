//! The lists of system calls: what each profile may do, what ends a process, what a program may not.
//!
//! A call without conditions is listed whatever its arguments are; a call that stands in a list several
//! times is listed if one of its entries fits. Arguments that point to memory cannot be looked into:
//! what that leaves open is told in the handbook under "Privileges".
//!
//! Reference: syscalls(2) and the page of each call.

use crate::profile::Profile;

/// A system call, for certain arguments.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) number: i64,
    /// All of these must hold.
    pub(super) when: Vec<When>,
}

/// What an argument, counted from 0, must be. All are of 32 bits but the pointer.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    Is(u8, u32),
    IsNot(u8, u32),
    /// A pointer that points nowhere.
    Null(u8),
    /// A pointer that points somewhere.
    NotNull(u8),
    /// The bits of the mask have this value.
    Bits(u8, u32, u32),
}

/// The calls of a profile.
pub(super) enum Rules {
    /// Nothing but what is allowed; some others end the process.
    Only { allowed: Vec<Call>, fatal: Vec<Call> },
    /// Everything but what is refused.
    AllBut { refused: Vec<Call> },
}

/// The rules of a profile.
pub(super) fn of(profile: Profile) -> Rules {
    match profile {
        Profile::Program => {
            let mut refused = for_programs();
            refused.extend(all(SENDING));
            refused.push(any(libc::SYS_setsockopt));
            Rules::AllBut { refused: with_x32(refused) }
        }
        Profile::Application => {
            let mut refused = for_programs();
            refused.extend(all(RECEIVING));
            refused.extend(options_but(WAITING));
            Rules::AllBut { refused: with_x32(refused) }
        }
        Profile::Fea => {
            let mut allowed = common();
            allowed.extend(all(FEA));
            allowed.extend(one_of(libc::SYS_bpf, 0, FEA_BPF));
            Rules::Only { allowed, fatal: all(FATAL) }
        }
        Profile::Manager => {
            let mut allowed = common();
            allowed.extend(restricted());
            // It hands the launcher what is to be kept.
            allowed.push(any(libc::SYS_sendmsg));
            Rules::Only { allowed, fatal: all(FATAL) }
        }
        Profile::Finder | Profile::Component => {
            let mut allowed = common();
            allowed.extend(restricted());
            Rules::Only { allowed, fatal: all(FATAL) }
        }
    }
}

fn any(number: i64) -> Call {
    Call { number, when: Vec::new() }
}

fn all(numbers: &[i64]) -> Vec<Call> {
    numbers.iter().map(|number| any(*number)).collect()
}

fn only(number: i64, when: &[When]) -> Call {
    Call { number, when: when.to_vec() }
}

/// A call with one of these values as an argument.
fn one_of(number: i64, argument: u8, values: &[i32]) -> Vec<Call> {
    let call = |value: &i32| only(number, &[When::Is(argument, value.cast_unsigned())]);
    values.iter().map(call).collect()
}

/// Memory, time, threads, waiting, files and connected sockets, whatever the arguments are.
const PLAIN: &[i64] = &[
    // Memory. Mapping for execution is below.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mlock,
    libc::SYS_munlock,
    libc::SYS_mincore,
    libc::SYS_memfd_create,
    libc::SYS_membarrier,
    // Time.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    // Threads. Making one is below.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_getcpu,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    // Signals to itself: sending is below.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    // What it is.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_getrusage,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_capget,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_pipe2,
    // Descriptors.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_lseek,
    // Files, as far as Landlock and their permissions go.
    libc::SYS_openat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstatfs,
    libc::SYS_statfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_fchmod,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fadvise64,
    libc::SYS_flock,
    libc::SYS_copy_file_range,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    libc::SYS_umask,
    // Connections. Making sockets, sending and options are below.
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    // More filters take more away.
    libc::SYS_seccomp,
];

/// Older forms of the same calls, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[i64] = &[
    libc::SYS_time,
    libc::SYS_getrlimit,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_pipe,
    libc::SYS_dup2,
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_inotify_init,
    libc::SYS_pause,
    libc::SYS_arch_prctl,
];
/// Newer architectures have the newer forms alone.
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[i64] = &[];

/// What the FEA may do beyond: open sockets of every kind, change interfaces, load eBPF, schedule threads.
const FEA: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_sendto,
    // With the descriptors that it opens for others.
    libc::SYS_sendmsg,
    libc::SYS_setsockopt,
    libc::SYS_ioctl,
    // How threads that move packets share the processors.
    libc::SYS_sched_getattr,
    libc::SYS_sched_setattr,
];

/// What of bpf(2) the FEA does: load programs and make maps, attach and detach them by links, read and write
/// its maps, and ask what is attached. It neither pins anything, nor reaches what others have loaded by
/// number, nor traces. Numbers of linux/bpf.h (`enum bpf_cmd`).
const FEA_BPF: &[i32] = &[
    0,  // BPF_MAP_CREATE
    1,  // BPF_MAP_LOOKUP_ELEM
    2,  // BPF_MAP_UPDATE_ELEM
    3,  // BPF_MAP_DELETE_ELEM
    5,  // BPF_PROG_LOAD
    15, // BPF_OBJ_GET_INFO_BY_FD
    16, // BPF_PROG_QUERY
    28, // BPF_LINK_CREATE
    34, // BPF_LINK_DETACH
];

/// What nothing in weft does after its start, so that whoever does it has taken the process over.
const FATAL: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];

/// `PROT_EXEC`.
const EXECUTE: u32 = libc::PROT_EXEC.cast_unsigned();
/// Flags of clone(2) that make namespaces.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();
const THREAD: u32 = libc::CLONE_THREAD.cast_unsigned();

/// What every process of weft may do.
fn common() -> Vec<Call> {
    let mut calls = all(PLAIN);
    calls.extend(all(OLDER));
    // Memory is written or executed, never both.
    calls.push(only(libc::SYS_mmap, &[When::Bits(2, EXECUTE, 0)]));
    calls.push(only(libc::SYS_mprotect, &[When::Bits(2, EXECUTE, 0)]));
    // Threads, no processes.
    calls.push(only(libc::SYS_clone, &[When::Bits(0, THREAD | NAMESPACES, THREAD)]));
    // Signals to itself, as abort(3) does it. The number of this process is known: it is the one that enters.
    let own = rustix::process::getpid().as_raw_pid();
    calls.extend(one_of(libc::SYS_tgkill, 0, &[own]));
    calls.extend(one_of(libc::SYS_kill, 0, &[own]));
    // Its own limits, which it can only lower.
    calls.extend(one_of(libc::SYS_prlimit64, 0, &[0, own]));
    calls.extend(one_of(libc::SYS_prctl, 0, PRCTL));
    calls.extend(one_of(libc::SYS_fcntl, 1, FCNTL));
    calls
}

/// What of prctl(2): not to outlive the launcher is not among it.
const PRCTL: &[i32] = &[
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_TIMERSLACK,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_SECCOMP,
    libc::PR_CAPBSET_READ,
    // The names of mappings, which allocators set.
    libc::PR_SET_VMA,
];

/// What of fcntl(2): sending signals (`F_SETOWN`) is not among it.
const FCNTL: &[i32] = &[
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
    libc::F_GETPIPE_SZ,
    libc::F_SETPIPE_SZ,
];

/// What of ioctl(2): nothing that changes more than a descriptor.
const IOCTL: &[libc::Ioctl] = &[
    libc::FIONREAD,
    libc::FIONBIO,
    libc::FIOCLEX,
    libc::TCGETS,
    libc::TIOCGWINSZ,
    libc::SIOCGIFINDEX,
    libc::SIOCGIFMTU,
    libc::SIOCGIFFLAGS,
    libc::SIOCGIFHWADDR,
];

/// Options of sockets that concern nobody else, by their level. Not among them: binding to an
/// interface, joining groups, promiscuous mode, filters, and lingering, which lets whoever closes the
/// last copy wait.
const OPTIONS: &[(i32, &[i32])] = &[
    (
        libc::SOL_SOCKET,
        &[
            libc::SO_SNDBUF,
            libc::SO_RCVBUF,
            libc::SO_SNDTIMEO,
            libc::SO_RCVTIMEO,
            libc::SO_KEEPALIVE,
            libc::SO_PASSCRED,
            libc::SO_PRIORITY,
            libc::SO_RXQ_OVFL,
            libc::SO_TIMESTAMP,
            libc::SO_TIMESTAMPNS,
            libc::SO_OOBINLINE,
        ],
    ),
    (
        libc::IPPROTO_TCP,
        &[
            libc::TCP_NODELAY,
            libc::TCP_CORK,
            libc::TCP_QUICKACK,
            libc::TCP_KEEPIDLE,
            libc::TCP_KEEPINTVL,
            libc::TCP_KEEPCNT,
            libc::TCP_USER_TIMEOUT,
        ],
    ),
    (
        libc::IPPROTO_IP,
        &[libc::IP_TOS, libc::IP_TTL, libc::IP_MTU_DISCOVER, libc::IP_PKTINFO, libc::IP_RECVERR],
    ),
    (
        libc::IPPROTO_IPV6,
        &[
            libc::IPV6_TCLASS,
            libc::IPV6_UNICAST_HOPS,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_RECVPKTINFO,
            libc::IPV6_RECVERR,
        ],
    ),
    (libc::IPPROTO_UDP, &[libc::UDP_SEGMENT, libc::UDP_GRO]),
];

/// What of bpf(2): reading and writing maps of which the process holds a descriptor, which Linux lets anybody
/// do; the numbers are those of `enum bpf_cmd` in linux/bpf.h.
const BPF: &[i32] = &[
    1,  // BPF_MAP_LOOKUP_ELEM
    2,  // BPF_MAP_UPDATE_ELEM
    3,  // BPF_MAP_DELETE_ELEM
    4,  // BPF_MAP_GET_NEXT_KEY
    15, // BPF_OBJ_GET_INFO_BY_FD
    21, // BPF_MAP_LOOKUP_AND_DELETE_ELEM
    24, // BPF_MAP_LOOKUP_BATCH
    25, // BPF_MAP_LOOKUP_AND_DELETE_BATCH
    26, // BPF_MAP_UPDATE_BATCH
    27, // BPF_MAP_DELETE_BATCH
];

// Sending to an address. A packet socket that is bound to one interface sends on any other that it is given
// the address of, without a right to. No filter sees the address, but it sees how long it is: the kernel
// refuses one for a packet socket (`sockaddr_ll`, 20 bytes) that has the length of one for IPv4, in
// `packet_snd` and `tpacket_snd` of net/packet/af_packet.c. So that is the only length; and sendmsg(2) and
// sendmmsg(2), whose lengths are in memory, are nobody's who can hold a packet socket. With them goes the
// sending of descriptors.

/// The arguments of sendto(2).
const FLAGS: u8 = 3;
const ADDRESS: u8 = 4;
const LENGTH: u8 = 5;
/// The length of a `sockaddr_in`.
const OF_IPV4: u32 = size_of::<libc::sockaddr_in>() as u32;
/// TCP: connects past Landlock.
const CONNECTS: u32 = libc::MSG_FASTOPEN.cast_unsigned();

// Attaching to a stack by a flow takes sending descriptors. A program that may do so must never hold a packet
// socket, nor any other of the network: it can make none, is started with none, and may not call what
// descriptors are received by. So it may either send descriptors or receive them.

/// Sending messages with an address, and with descriptors.
const SENDING: &[i64] = &[libc::SYS_sendmsg, libc::SYS_sendmmsg];
/// Receiving messages with descriptors. sendmmsg(2) is not needed for a flow.
const RECEIVING: &[i64] = &[libc::SYS_recvmsg, libc::SYS_recvmmsg, libc::SYS_sendmmsg];

/// The options of sockets of which attaching takes one: how long connecting may wait. 66 and 67 are the newer
/// forms, `SO_RCVTIMEO_NEW` and `SO_SNDTIMEO_NEW` of asm-generic/socket.h.
const WAITING: &[i32] = &[libc::SO_RCVTIMEO, libc::SO_SNDTIMEO, 66, 67];

/// Setting options of sockets, but for these.
fn options_but(options: &[i32]) -> Vec<Call> {
    let others = options.iter().map(|option| When::IsNot(2, option.cast_unsigned()));
    let of_sockets = When::Is(1, libc::SOL_SOCKET.cast_unsigned());
    let elsewhere = When::IsNot(1, libc::SOL_SOCKET.cast_unsigned());
    let others: Vec<_> = std::iter::once(of_sockets).chain(others).collect();
    vec![only(libc::SYS_setsockopt, &[elsewhere]), only(libc::SYS_setsockopt, &others)]
}

/// What of sockets and maps, where the process works with those that it is given.
fn restricted() -> Vec<Call> {
    let unix = &[libc::AF_UNIX];
    let mut calls = one_of(libc::SYS_socket, 0, unix);
    calls.extend(one_of(libc::SYS_bpf, 0, BPF));
    calls.extend(one_of(libc::SYS_socketpair, 0, unix));
    calls.push(only(libc::SYS_sendto, &[When::Null(ADDRESS)]));
    let short = [When::Is(LENGTH, OF_IPV4), When::Bits(FLAGS, CONNECTS, 0)];
    calls.push(only(libc::SYS_sendto, &short));
    for (level, options) in OPTIONS {
        let level = When::Is(1, level.cast_unsigned());
        let option = |option: &i32| {
            only(libc::SYS_setsockopt, &[level, When::Is(2, option.cast_unsigned())])
        };
        calls.extend(options.iter().map(option));
    }
    // All of these codes have 32 bits.
    calls.extend(IOCTL.iter().map(|code| only(libc::SYS_ioctl, &[When::Is(1, *code as u32)])));
    calls
}

/// What a program of others may not do, of either kind: what no process of weft may, but for executing
/// programs and making processes.
fn for_programs() -> Vec<Call> {
    let keeps = [libc::SYS_execve, libc::SYS_execveat];
    let mut calls: Vec<_> =
        FATAL.iter().filter(|number| !keeps.contains(number)).map(|number| any(*number)).collect();
    calls.push(only(libc::SYS_socket, &[When::IsNot(0, libc::AF_UNIX.cast_unsigned())]));
    calls.push(only(libc::SYS_socketpair, &[When::IsNot(0, libc::AF_UNIX.cast_unsigned())]));
    calls.extend(all(&[libc::SYS_bind, libc::SYS_listen, libc::SYS_bpf]));
    let somewhere = When::NotNull(ADDRESS);
    calls.push(only(libc::SYS_sendto, &[somewhere, When::IsNot(LENGTH, OF_IPV4)]));
    calls.push(only(libc::SYS_sendto, &[somewhere, When::Bits(FLAGS, CONNECTS, CONNECTS)]));
    // It ends with the launcher; and what changes users and the terminal is nothing for it.
    calls.extend(one_of(libc::SYS_prctl, 0, &[libc::PR_SET_PDEATHSIG]));
    for bit in 0..32 {
        if NAMESPACES & 1 << bit != 0 {
            calls.push(only(libc::SYS_clone, &[When::Bits(0, 1 << bit, 1 << bit)]));
        }
    }
    calls.extend(one_of(libc::SYS_ioctl, 1, &[libc::TIOCSTI as i32]));
    calls
}

/// On x86-64 the same calls have second numbers, which a list of what is refused must name, too. Those
/// whose arguments lie otherwise in memory have numbers of their own (arch/x86/entry/syscalls/
/// syscall_64.tbl); without these no program of that kind comes far, and nothing is lost with them.
fn with_x32(mut calls: Vec<Call>) -> Vec<Call> {
    const X32: i64 = 0x4000_0000;
    const OWN: std::ops::RangeInclusive<i64> = 512..=547;
    if cfg!(target_arch = "x86_64") {
        let twin = |call: &Call| Call { number: call.number | X32, when: call.when.clone() };
        let twins: Vec<_> = calls.iter().map(twin).collect();
        calls.extend(twins);
        calls.extend(OWN.map(|number| any(number | X32)));
    }
    calls
}
