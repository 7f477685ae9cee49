//! The system calls that a program in bubblewrap may not make, as a program for seccomp. Pure.
//!
//! It refuses memory that counts for no process, such as shared memory, because the limit on memory adds up that of processes. It
//! also refuses sockets that leave the network namespace, and calls that are often used to attack the kernel. A refused call fails
//! with EPERM, so a program sees an error.

/// The system calls of a processor. Their numbers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyscallTable {
    X86_64,
    Aarch64,
}

/// The name of a call, its number on x86-64 and its number on AArch64.
type Syscall = (&'static str, u32, u32);

const DENIED: [Syscall; 51] = [
    // Memory that belongs to no process.
    ("memfd_create", 319, 279),
    ("memfd_secret", 447, 447),
    ("shmget", 29, 194),
    ("shmat", 30, 196),
    ("shmctl", 31, 195),
    ("semget", 64, 190),
    ("msgget", 68, 186),
    ("mq_open", 240, 180),
    // A page that it puts into a pipe can keep two megabytes, also when the process has given them back.
    ("vmsplice", 278, 75),
    ("add_key", 248, 217),
    ("request_key", 249, 218),
    ("keyctl", 250, 219),
    // They would make the calls that this filter refuses.
    ("io_uring_setup", 425, 425),
    ("io_uring_enter", 426, 426),
    ("io_uring_register", 427, 427),
    // Parts of the kernel that no ordinary program needs.
    ("bpf", 321, 280),
    ("perf_event_open", 298, 241),
    ("userfaultfd", 323, 282),
    ("ptrace", 101, 117),
    ("process_vm_readv", 310, 270),
    ("process_vm_writev", 311, 271),
    ("pidfd_getfd", 438, 438),
    ("kcmp", 312, 272),
    ("unshare", 272, 97),
    ("setns", 308, 268),
    ("mount", 165, 40),
    ("umount2", 166, 39),
    ("pivot_root", 155, 41),
    ("chroot", 161, 51),
    ("open_tree", 428, 428),
    ("move_mount", 429, 429),
    ("fsopen", 430, 430),
    ("fsconfig", 431, 431),
    ("fsmount", 432, 432),
    ("fspick", 433, 433),
    ("mount_setattr", 442, 442),
    ("name_to_handle_at", 303, 264),
    ("open_by_handle_at", 304, 265),
    ("fanotify_init", 300, 262),
    ("kexec_load", 246, 104),
    ("kexec_file_load", 320, 294),
    ("init_module", 175, 105),
    ("finit_module", 313, 273),
    ("delete_module", 176, 106),
    ("reboot", 169, 142),
    ("swapon", 167, 224),
    ("swapoff", 168, 225),
    ("acct", 163, 89),
    ("quotactl", 179, 60),
    ("quotactl_fd", 443, 443),
    ("syslog", 103, 116),
];

const MMAP: Syscall = ("mmap", 9, 222);
const SOCKET: Syscall = ("socket", 41, 198);
const SOCKETPAIR: Syscall = ("socketpair", 53, 199);
const SETSOCKOPT: Syscall = ("setsockopt", 54, 208);
const FCNTL: Syscall = ("fcntl", 72, 25);

/// `MAP_SHARED` with `MAP_ANONYMOUS`.
const SHARED_ANONYMOUS: u32 = 0x01 | 0x20;

/// `AF_UNIX`, `AF_INET`, `AF_INET6` and `AF_NETLINK`, which stay inside the network namespace of the sandbox.
const FAMILIES: [u32; 4] = [1, 2, 10, 16];

/// `SOL_SOCKET`, and its options `SO_SNDBUF`, `SO_RCVBUF`, `SO_SNDBUFFORCE` and `SO_RCVBUFFORCE`. The limit on memory counts a buffer
/// of the usual size for each socket. The last is `SO_ZEROCOPY`, with which a socket keeps pages as `vmsplice` does.
const OF_ALL_SOCKETS: u32 = 1;
const SOCKET_OPTIONS: [u32; 5] = [7, 8, 32, 33, 60];

/// `F_SETPIPE_SZ`. The limit on memory counts the usual size for each pipe.
const SET_PIPE_SIZE: u32 = 1031;

/// Numbers from here on are those of x32, another set of calls of the same processor.
const X32: u32 = 0x4000_0000;

// Offsets in the kernel's `seccomp_data`. Arguments have 64 bits; the lower half comes first.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;
const THIRD_ARGUMENT: u32 = 32;
const FOURTH_ARGUMENT: u32 = 40;

// Codes of instructions: load a word, and with a constant, jump if equal, jump if not less, return.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_FROM: u16 = 0x35;
const RETURN: u16 = 0x06;

// Results. The lower half of a refusal is the error, EPERM.
const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0001;
const KILL: u32 = 0x8000_0000;

/// An instruction: how many instructions it skips if its comparison is true and if it is false, and its constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    constant: u32,
}

impl SyscallTable {
    /// `None` for a processor whose numbers are not listed here.
    pub fn of_this_machine() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(SyscallTable::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(SyscallTable::Aarch64)
        } else {
            None
        }
    }

    fn number(self, (_, x86_64, aarch64): Syscall) -> u32 {
        match self {
            SyscallTable::X86_64 => x86_64,
            SyscallTable::Aarch64 => aarch64,
        }
    }

    /// The kernel's name for the architecture, `AUDIT_ARCH_…`.
    fn architecture(self) -> u32 {
        match self {
            SyscallTable::X86_64 => 0xc000_003e,
            SyscallTable::Aarch64 => 0xc000_00b7,
        }
    }
}

/// The filter, as bubblewrap's `--seccomp` reads it.
pub fn filter(table: SyscallTable) -> Vec<u8> {
    program(table).into_iter().flat_map(bytes).collect()
}

/// Both processors have the lower byte first.
fn bytes(instruction: Instruction) -> [u8; 8] {
    let ([code_0, code_1], constant) = (instruction.code.to_le_bytes(), instruction.constant.to_le_bytes());
    let [constant_0, constant_1, constant_2, constant_3] = constant;
    let (if_true, if_false) = (instruction.if_true, instruction.if_false);
    [code_0, code_1, if_true, if_false, constant_0, constant_1, constant_2, constant_3]
}

fn program(table: SyscallTable) -> Vec<Instruction> {
    let mut program = vec![
        load(ARCHITECTURE),
        jump(JUMP_EQUAL, table.architecture(), 1, 0),
        // Programs for another architecture have other numbers.
        result(KILL),
        load(NUMBER),
        jump(JUMP_FROM, X32, 0, 1),
        result(REFUSE),
    ];
    for denied in DENIED {
        program.extend([jump(JUMP_EQUAL, table.number(denied), 0, 1), result(REFUSE)]);
    }
    program.extend([
        jump(JUMP_EQUAL, table.number(MMAP), 0, 5),
        load(FOURTH_ARGUMENT),
        jump(AND, SHARED_ANONYMOUS, 0, 0),
        jump(JUMP_EQUAL, SHARED_ANONYMOUS, 0, 1),
        result(REFUSE),
        result(ALLOW),
    ]);
    program.extend([
        jump(JUMP_EQUAL, table.number(FCNTL), 0, 4),
        load(SECOND_ARGUMENT),
        jump(JUMP_EQUAL, SET_PIPE_SIZE, 0, 1),
        result(REFUSE),
        result(ALLOW),
    ]);
    let [send, receive, force_send, force_receive, zero_copy] = SOCKET_OPTIONS;
    program.extend([
        jump(JUMP_EQUAL, table.number(SETSOCKOPT), 0, 10),
        load(SECOND_ARGUMENT),
        jump(JUMP_EQUAL, OF_ALL_SOCKETS, 0, 7),
        load(THIRD_ARGUMENT),
        jump(JUMP_EQUAL, send, 4, 0),
        jump(JUMP_EQUAL, receive, 3, 0),
        jump(JUMP_EQUAL, force_send, 2, 0),
        jump(JUMP_EQUAL, force_receive, 1, 0),
        jump(JUMP_EQUAL, zero_copy, 0, 1),
        result(REFUSE),
        result(ALLOW),
    ]);
    let [unix, inet, inet6, netlink] = FAMILIES;
    program.extend([
        jump(JUMP_EQUAL, table.number(SOCKET), 1, 0),
        jump(JUMP_EQUAL, table.number(SOCKETPAIR), 0, 6),
        load(FIRST_ARGUMENT),
        jump(JUMP_EQUAL, unix, 4, 0),
        jump(JUMP_EQUAL, inet, 3, 0),
        jump(JUMP_EQUAL, inet6, 2, 0),
        jump(JUMP_EQUAL, netlink, 1, 0),
        result(REFUSE),
        result(ALLOW),
    ]);
    program
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, if_true: 0, if_false: 0, constant: offset }
}

fn jump(code: u16, constant: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code, if_true, if_false, constant }
}

fn result(constant: u32) -> Instruction {
    Instruction { code: RETURN, if_true: 0, if_false: 0, constant }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TABLES: [SyscallTable; 2] = [SyscallTable::X86_64, SyscallTable::Aarch64];

    #[test]
    fn a_filter_begins_with_the_architecture_and_ends_with_a_result() {
        for (table, architecture) in TABLES.into_iter().zip([0xc000_003e, 0xc000_00b7]) {
            let program = program(table);
            assert_eq!(
                program[..6],
                [
                    load(4),
                    jump(JUMP_EQUAL, architecture, 1, 0),
                    result(KILL),
                    load(0),
                    jump(JUMP_FROM, 0x4000_0000, 0, 1),
                    result(REFUSE)
                ]
            );
            assert_eq!(program.last(), Some(&result(ALLOW)));
            assert_eq!(filter(table).len(), program.len() * 8);
        }
    }

    #[test]
    fn no_jump_leaves_the_program() {
        for table in TABLES {
            let program = program(table);
            for (index, instruction) in program.iter().enumerate() {
                let furthest = index + 1 + usize::from(instruction.if_true.max(instruction.if_false));
                assert!(
                    furthest < program.len() || instruction.code == RETURN,
                    "{table:?} {index} {instruction:?}"
                );
            }
        }
    }

    #[test]
    fn every_denied_call_is_refused_by_its_own_number() {
        for table in TABLES {
            let program = program(table);
            let numbers: BTreeSet<u32> = DENIED.into_iter().map(|call| table.number(call)).collect();
            assert_eq!(numbers.len(), DENIED.len(), "{table:?}: two calls have one number");
            for call in [MMAP, SOCKET, SOCKETPAIR, SETSOCKOPT, FCNTL] {
                assert!(!numbers.contains(&table.number(call)), "{table:?} {call:?}");
            }
            for call in DENIED {
                let compared = jump(JUMP_EQUAL, table.number(call), 0, 1);
                let at = program.iter().position(|instruction| *instruction == compared);
                assert_eq!(
                    at.and_then(|at| program.get(at + 1)),
                    Some(&result(REFUSE)),
                    "{table:?} {call:?}"
                );
            }
        }
    }

    #[test]
    fn instructions_are_written_as_the_kernel_reads_them() {
        assert_eq!(
            bytes(jump(JUMP_EQUAL, 0xc000_003e, 1, 2)),
            [0x15, 0x00, 0x01, 0x02, 0x3e, 0x00, 0x00, 0xc0]
        );
    }
}
