/* The command line, and the loop that sees every call of the program and its threads. Linux only. */

#define _GNU_SOURCE
#include "disk_faults.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "disk_faults run --dir DIRECTORY [--journal FILE] [--kill-at N] [--torn] [--calls FILE] -- PROGRAM [ARGUMENT]...\n"
    "disk_faults restore --dir DIRECTORY --journal FILE [--seed N]\n"
    "\n"
    "run: SIGTERM reaches the program; SIGUSR1 ends it as a crash does.\n";

/* Only these calls stop the program; all others run at full speed. */
static const long watched[] = {
    SYS_write,     SYS_pwrite64, SYS_writev,   SYS_pwritev,   SYS_ftruncate, SYS_fallocate,
    SYS_fsync,     SYS_fdatasync, SYS_openat,  SYS_renameat2, SYS_unlinkat,  SYS_linkat,
    SYS_mkdirat,
#ifdef SYS_open
    SYS_open,
#endif
#ifdef SYS_rename
    SYS_rename,    SYS_unlink,   SYS_link,     SYS_mkdir,     SYS_rmdir,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
};

/* These change files without passing their bytes through the program. Programs fall back to read and write. */
static const long refused[] = { SYS_copy_file_range, SYS_sendfile, SYS_splice };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_WAITING 4096

static pid_t program;

void fail(const char *what) {
    fprintf(stderr, "disk_faults: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void install_filter(void) {
    struct sock_filter filter[2 * (COUNT(watched) + COUNT(refused)) + 2];
    size_t used = 0;
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT(watched); i++) {
        filter[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)watched[i], 0, 1);
        filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    for (size_t i = 0; i < COUNT(refused); i++) {
        filter[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused[i], 0, 1);
        filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL);
    }
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog list = { .len = (unsigned short)used, .filter = filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &list)) fail("seccomp");
}

static void forward(int number) {
    kill(program, number == SIGUSR1 ? SIGKILL : number);
}

/* Starts the program under the tracer. */
static void start(char **command) {
    int ready[2];
    if (pipe(ready)) fail("pipe");
    program = fork();
    if (program < 0) fail("fork");
    if (program == 0) {
        char byte;
        close(ready[1]);
        if (read(ready[0], &byte, 1) != 1) _exit(2);
        close(ready[0]);
        install_filter();
        execvp(command[0], command);
        fprintf(stderr, "disk_faults: %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    close(ready[0]);
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK
                   | PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD;
    if (ptrace(PTRACE_SEIZE, program, 0, options)) fail("ptrace");
    struct sigaction action = { .sa_handler = forward };
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    if (write(ready[1], "x", 1) != 1) fail("pipe");
    close(ready[1]);
}

/* Threads whose call waits for the end of another's, in order. One call at a time makes the journal's order the real one. */
static pid_t waiting[MAX_WAITING];
static size_t waiting_count;

/* The thread in a call that changes something, and its change. */
static pid_t busy;
static struct call busy_call;
static struct change busy_change;

static long kill_at;
static bool torn;
static long calls;

static bool read_call(pid_t thread, struct call *call) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return false;
    if (info.op != PTRACE_SYSCALL_INFO_SECCOMP) return false;
    call->thread = thread;
    call->number = (long)info.seccomp.nr;
    memcpy(call->arguments, info.seccomp.args, sizeof call->arguments);
    return true;
}

/* The thread stands before a call. */
static void enter(pid_t thread) {
    struct call call;
    if (!read_call(thread, &call) || !begin_change(&call, &busy_change)) {
        ptrace(PTRACE_CONT, thread, 0, 0);
        return;
    }
    calls++;
    if (calls == kill_at) {
        if (torn) tear_change(&call, &busy_change);
        free(busy_change.old);
        kill(program, SIGKILL);
        return;
    }
    busy = thread;
    busy_call = call;
    ptrace(PTRACE_SYSCALL, thread, 0, 0);
}

/* Lets the threads continue that waited. */
static void next(void) {
    while (!busy && waiting_count > 0) {
        pid_t thread = waiting[0];
        memmove(waiting, waiting + 1, --waiting_count * sizeof waiting[0]);
        enter(thread);
    }
}

static void leave(void) {
    struct __ptrace_syscall_info info;
    int64_t result = -1;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, busy, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_EXIT)
        result = info.exit.rval;
    end_change(&busy_call, &busy_change, result);
    ptrace(PTRACE_CONT, busy, 0, 0);
    busy = 0;
}

static void stopped(pid_t thread, int status) {
    int number = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP) {
        if (busy) {
            if (waiting_count == MAX_WAITING) fail("too many threads");
            waiting[waiting_count++] = thread;
        } else {
            enter(thread);
        }
    } else if (number == (SIGTRAP | 0x80)) {
        if (thread == busy) leave();
        else ptrace(PTRACE_CONT, thread, 0, 0);
    } else if (event == PTRACE_EVENT_STOP && number != SIGTRAP) {
        ptrace(PTRACE_LISTEN, thread, 0, 0);
    } else {
        /* A thread that has just begun, or a signal, which is passed on. A call that a signal interrupts ends first. */
        int passed = event ? 0 : number;
        ptrace(thread == busy ? PTRACE_SYSCALL : PTRACE_CONT, thread, 0, passed);
    }
}

static int run(char **command, const char *calls_file) {
    start(command);
    int result = 2;
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == EINTR) continue;
        if (thread < 0) break;
        if (WIFSTOPPED(status)) {
            stopped(thread, status);
        } else {
            if (thread == program) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            if (thread == busy) {
                free(busy_change.old);
                busy = 0;
            }
        }
        next();
    }
    if (calls_file) {
        FILE *file = fopen(calls_file, "w");
        if (!file || fprintf(file, "%ld\n", calls) < 0 || fclose(file)) fail(calls_file);
    }
    return result;
}

int main(int count, char **words) {
    const char *directory = NULL, *journal = NULL, *calls_file = NULL;
    unsigned seed, *given_seed = NULL;
    if (count < 2) {
        fputs(usage, stderr);
        return 2;
    }
    bool runs = strcmp(words[1], "run") == 0;
    int at = 2;
    for (; at < count && strcmp(words[at], "--") != 0; at++) {
        const char *value = at + 1 < count ? words[at + 1] : "";
        if (strcmp(words[at], "--torn") == 0) torn = true;
        else if (strcmp(words[at], "--dir") == 0) directory = value, at++;
        else if (strcmp(words[at], "--journal") == 0) journal = value, at++;
        else if (strcmp(words[at], "--calls") == 0) calls_file = value, at++;
        else if (strcmp(words[at], "--kill-at") == 0) kill_at = atol(value), at++;
        else if (strcmp(words[at], "--seed") == 0) seed = (unsigned)strtoul(value, NULL, 10), given_seed = &seed, at++;
        else directory = NULL, at = count;
    }
    if (!directory || (runs ? at + 1 >= count : !journal || strcmp(words[1], "restore") != 0)) {
        fputs(usage, stderr);
        return 2;
    }
    char resolved[PATH_MAX];
    if (!realpath(directory, resolved)) fail(directory);
    if (!runs) return restore(resolved, journal, given_seed);
    watch_directory(resolved, journal);
    return run(words + at + 1, calls_file);
}
