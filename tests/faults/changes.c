/* Which calls change files of the directory, and the journal of what they changed. */

#define _GNU_SOURCE
#include "disk_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* More than a program of the tests writes at once. */
#define MAX_BYTES (256u << 20)

static char directory[PATH_MAX];
static size_t directory_length;
static int journal = -1;
static char saved_directory[PATH_MAX];
static unsigned saved_count;

void watch_directory(const char *path, const char *journal_path) {
    directory_length = (size_t)snprintf(directory, sizeof directory, "%s", path);
    if (!journal_path) return;
    journal = open(journal_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(saved_directory, sizeof saved_directory, "%s.saved", journal_path);
    if (journal < 0 || (mkdir(saved_directory, 0700) && errno != EEXIST)) fail(journal_path);
}

static void write_all(int file, const void *bytes, size_t length) {
    for (const char *at = bytes; length > 0;) {
        ssize_t written = write(file, at, length);
        if (written < 0) fail("the journal");
        at += written;
        length -= (size_t)written;
    }
}

static bool is_inside(const char *path) {
    if (strncmp(path, directory, directory_length) != 0) return false;
    if (path[directory_length] != '/' && path[directory_length] != 0) return false;
    /* SQLite's index of the write-ahead log: it is made anew after a crash, and is never synced. */
    size_t length = strlen(path);
    return length < 4 || strcmp(path + length - 4, "-shm") != 0;
}

static bool read_link(const char *link, char *path) {
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return false;
    path[length] = 0;
    return true;
}

static void descriptor_link(char *link, pid_t thread, int descriptor) {
    snprintf(link, 64, "/proc/%d/fd/%d", thread, descriptor);
}

/* The path of an open file of the directory, and what it is. */
static bool open_file(const struct call *call, struct change *change, struct stat *status) {
    char link[64];
    descriptor_link(link, call->thread, (int)call->arguments[0]);
    return read_link(link, change->path) && is_inside(change->path) && stat(link, status) == 0;
}

static bool read_memory(pid_t thread, uint64_t address, void *into, size_t length) {
    struct iovec local = { into, length }, remote = { (void *)(uintptr_t)address, length };
    return process_vm_readv(thread, &local, 1, &remote, 1, 0) == (ssize_t)length;
}

static bool read_text(pid_t thread, uint64_t address, char *text) {
    /* A page at a time, because the next one may not exist. */
    for (size_t length = 0; length < PATH_MAX - 1;) {
        size_t step = 4096 - (size_t)((address + length) % 4096);
        if (step > PATH_MAX - 1 - length) step = PATH_MAX - 1 - length;
        if (!read_memory(thread, address + length, text + length, step)) return false;
        if (memchr(text + length, 0, step)) return true;
        length += step;
    }
    return false;
}

/* The absolute path that a call names, with the links of its directory resolved, if it is in the directory. */
static bool named_path(const struct call *call, int base, uint64_t address, char *path, ino_t *parent) {
    char name[PATH_MAX], whole[2 * PATH_MAX + 80], link[64], resolved[PATH_MAX];
    if (!read_text(call->thread, address, name) || name[0] == 0) return false;
    if (name[0] == '/') {
        snprintf(whole, sizeof whole, "%s", name);
    } else {
        if (base == AT_FDCWD) snprintf(link, sizeof link, "/proc/%d/cwd", call->thread);
        else descriptor_link(link, call->thread, base);
        if (!read_link(link, resolved)) return false;
        snprintf(whole, sizeof whole, "%s/%s", resolved, name);
    }
    char *slash = strrchr(whole, '/');
    char last[PATH_MAX];
    snprintf(last, sizeof last, "%s", slash + 1);
    *(slash == whole ? slash + 1 : slash) = 0;
    struct stat status;
    if (last[0] == 0 || !realpath(whole, resolved) || stat(resolved, &status)) return false;
    *parent = status.st_ino;
    return snprintf(path, PATH_MAX, "%s/%s", resolved, last) < PATH_MAX && is_inside(path);
}

static void read_old(const char *path, struct change *change, off_t from, size_t length) {
    change->old_length = 0;
    if (journal < 0 || from >= change->old_size || length == 0) return;
    if ((off_t)length > change->old_size - from) length = (size_t)(change->old_size - from);
    if (length > MAX_BYTES) fail("a write is too large for the journal");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    change->old = malloc(length);
    if (file < 0 || !change->old || pread(file, change->old, length, from) != (ssize_t)length) fail(path);
    close(file);
    change->old_length = length;
}

/* Where a plain write goes: to the position of the file, or to its end. */
static off_t position(const struct call *call, off_t size) {
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", call->thread, (int)call->arguments[0]);
    FILE *file = fopen(path, "re");
    long long at = 0;
    unsigned flags = 0;
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "pos: %lld", &at);
        sscanf(line, "flags: %o", &flags);
    }
    if (file) fclose(file);
    return flags & O_APPEND ? size : (off_t)at;
}

static size_t vector_length(const struct call *call) {
    struct iovec parts[1024];
    size_t count = (size_t)call->arguments[2], total = 0;
    if (count > 1024 || !read_memory(call->thread, call->arguments[1], parts, count * sizeof parts[0])) return 0;
    for (size_t i = 0; i < count; i++) total += parts[i].iov_len;
    return total;
}

static bool begin_write(const struct call *call, struct change *change) {
    struct stat status;
    if (!open_file(call, change, &status) || !S_ISREG(status.st_mode)) return false;
    bool is_vector = call->number == SYS_writev || call->number == SYS_pwritev;
    bool is_placed = call->number == SYS_pwrite64 || call->number == SYS_pwritev;
    change->kind = CHANGE_WRITE;
    change->inode = status.st_ino;
    change->old_size = status.st_size;
    change->length = is_vector ? vector_length(call) : (size_t)call->arguments[2];
    change->offset = is_placed ? (off_t)call->arguments[3] : position(call, status.st_size);
    char link[64];
    descriptor_link(link, call->thread, (int)call->arguments[0]);
    read_old(link, change, change->offset, change->length);
    return true;
}

static bool begin_truncate(const struct call *call, struct change *change, off_t new_size) {
    struct stat status;
    if (!open_file(call, change, &status) || !S_ISREG(status.st_mode)) return false;
    change->kind = CHANGE_TRUNCATE;
    change->inode = status.st_ino;
    change->old_size = status.st_size;
    change->offset = new_size;
    char link[64];
    descriptor_link(link, call->thread, (int)call->arguments[0]);
    if (new_size < status.st_size) read_old(link, change, new_size, (size_t)(status.st_size - new_size));
    return true;
}

static bool begin_sync(const struct call *call, struct change *change) {
    struct stat status;
    if (!open_file(call, change, &status)) return false;
    change->kind = CHANGE_SYNC;
    change->inode = status.st_ino;
    change->is_directory = S_ISDIR(status.st_mode);
    return true;
}

/* A file that exists is changed only if it is emptied. */
static bool begin_open(const struct call *call, struct change *change, int base, uint64_t name, int flags) {
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE) return false;
    if (!named_path(call, base, name, change->path, &change->directory)) return false;
    struct stat status;
    if (lstat(change->path, &status) != 0) {
        change->kind = CHANGE_CREATE;
        return (flags & O_CREAT) != 0;
    }
    if (!(flags & O_TRUNC) || (flags & O_EXCL) || !S_ISREG(status.st_mode) || status.st_size == 0) return false;
    change->kind = CHANGE_TRUNCATE;
    change->truncates = true;
    change->inode = status.st_ino;
    change->old_size = status.st_size;
    change->offset = 0;
    read_old(change->path, change, 0, (size_t)status.st_size);
    return true;
}

static bool begin_create(const struct call *call, struct change *change, int base, uint64_t name) {
    struct stat status;
    change->kind = CHANGE_CREATE;
    return named_path(call, base, name, change->path, &change->directory) && lstat(change->path, &status) != 0;
}

/* Another link keeps what the call takes away. */
static void save(const char *path, char *saved) {
    if (journal < 0) return;
    snprintf(saved, PATH_MAX, "%.*s/%u", PATH_MAX - 16, saved_directory, saved_count++);
    if (linkat(AT_FDCWD, path, AT_FDCWD, saved, 0)) fail(path);
}

static bool begin_rename(const struct call *call, struct change *change, int from_base, uint64_t from, int to_base,
                         uint64_t to) {
    ino_t from_parent;
    struct stat status;
    change->kind = CHANGE_RENAME;
    if (!named_path(call, from_base, from, change->path, &from_parent)) return false;
    if (!named_path(call, to_base, to, change->to, &change->directory)) return false;
    if (lstat(change->path, &status)) return false;
    change->inode = status.st_ino;
    if (lstat(change->to, &status) == 0 && S_ISREG(status.st_mode)) save(change->to, change->saved);
    return true;
}

static bool begin_remove(const struct call *call, struct change *change, int base, uint64_t name) {
    struct stat status;
    change->kind = CHANGE_REMOVE;
    if (!named_path(call, base, name, change->path, &change->directory)) return false;
    if (lstat(change->path, &status)) return false;
    change->inode = status.st_ino;
    change->is_directory = S_ISDIR(status.st_mode);
    if (S_ISREG(status.st_mode)) save(change->path, change->saved);
    return true;
}

bool begin_change(const struct call *call, struct change *change) {
    const uint64_t *is = call->arguments;
    memset(change, 0, offsetof(struct change, path));
    change->path[0] = change->to[0] = change->saved[0] = 0;
    switch (call->number) {
    case SYS_write: case SYS_pwrite64: case SYS_writev: case SYS_pwritev: return begin_write(call, change);
    case SYS_ftruncate: return begin_truncate(call, change, (off_t)is[1]);
    case SYS_fsync: case SYS_fdatasync: return begin_sync(call, change);
    case SYS_openat: return begin_open(call, change, (int)is[0], is[1], (int)is[2]);
    case SYS_renameat2: return begin_rename(call, change, (int)is[0], is[1], (int)is[2], is[3]);
    case SYS_unlinkat: return begin_remove(call, change, (int)is[0], is[1]);
    case SYS_linkat: return begin_create(call, change, (int)is[2], is[3]);
    case SYS_mkdirat: return begin_create(call, change, (int)is[0], is[1]);
    case SYS_fallocate: {
        struct stat status;
        /* Only what makes a file longer matters, and what a hole takes is not used by programs of the tests. */
        if (!open_file(call, change, &status)) return false;
        if (is[1] != 0 || (off_t)(is[2] + is[3]) <= status.st_size) return false;
        return begin_truncate(call, change, (off_t)(is[2] + is[3]));
    }
#ifdef SYS_open
    case SYS_open: return begin_open(call, change, AT_FDCWD, is[0], (int)is[1]);
#endif
#ifdef SYS_rename
    case SYS_rename: return begin_rename(call, change, AT_FDCWD, is[0], AT_FDCWD, is[1]);
    case SYS_unlink: case SYS_rmdir: return begin_remove(call, change, AT_FDCWD, is[0]);
    case SYS_link: return begin_create(call, change, AT_FDCWD, is[1]);
    case SYS_mkdir: return begin_create(call, change, AT_FDCWD, is[0]);
#endif
#ifdef SYS_renameat
    case SYS_renameat: return begin_rename(call, change, (int)is[0], is[1], (int)is[2], is[3]);
#endif
    default: return false;
    }
}

/* A line of the journal; the bytes follow it. */
static void record(const struct change *change, const unsigned char *new, size_t new_length) {
    char line[3 * PATH_MAX + 256];
    static const char kinds[] = { 'W', 'T', 'C', 'R', 'U', 'S' };
    int length = snprintf(line, sizeof line, "%c\t%llu\t%llu\t%lld\t%lld\t%zu\t%zu\t%d\t%s\t%s\t%s\n", kinds[change->kind],
                          (unsigned long long)change->inode, (unsigned long long)change->directory,
                          (long long)change->offset, (long long)change->old_size, change->old_length, new_length,
                          change->is_directory, change->path, change->to, change->saved);
    write_all(journal, line, (size_t)length);
    write_all(journal, change->old, change->old_length);
    write_all(journal, new, new_length);
}

void end_change(const struct call *call, struct change *change, int64_t result) {
    unsigned char *new = NULL;
    size_t new_length = 0;
    struct stat status;
    if (journal >= 0 && result >= 0) {
        if (change->kind == CHANGE_WRITE && result > 0) {
            char link[64];
            descriptor_link(link, call->thread, (int)call->arguments[0]);
            int file = open(link, O_RDONLY | O_CLOEXEC);
            new_length = (size_t)result;
            new = malloc(new_length);
            if (file < 0 || !new || pread(file, new, new_length, change->offset) != (ssize_t)new_length) fail("reading back");
            close(file);
        }
        if (change->kind == CHANGE_CREATE && lstat(change->path, &status) == 0) {
            change->inode = status.st_ino;
            change->is_directory = S_ISDIR(status.st_mode);
        }
        record(change, new, new_length);
    }
    free(new);
    free(change->old);
    change->old = NULL;
}

void tear_change(const struct call *call, const struct change *change) {
    size_t half = change->length / 2;
    if (change->kind != CHANGE_WRITE || half == 0) return;
    if (call->number != SYS_write && call->number != SYS_pwrite64) return;
    char link[64];
    unsigned char *bytes = malloc(half);
    descriptor_link(link, call->thread, (int)call->arguments[0]);
    int file = open(link, O_WRONLY | O_CLOEXEC);
    if (file < 0 || !bytes || !read_memory(call->thread, call->arguments[1], bytes, half)) fail("tearing a write");
    if (pwrite(file, bytes, half, change->offset) != (ssize_t)half) fail("tearing a write");
    close(file);
    free(bytes);
}
