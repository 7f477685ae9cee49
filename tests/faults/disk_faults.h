/* Runs a program and records, or ends it at, each change that it makes to the files of a directory. See README.md. */

#ifndef DISK_FAULTS_H
#define DISK_FAULTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A call to the system. */
struct call {
    pid_t thread;
    long number;
    uint64_t arguments[6];
};

enum change_kind { CHANGE_WRITE, CHANGE_TRUNCATE, CHANGE_CREATE, CHANGE_RENAME, CHANGE_REMOVE, CHANGE_SYNC };

/* What a call is about to change. */
struct change {
    enum change_kind kind;
    ino_t inode;
    ino_t directory; /* of the name that changes */
    off_t offset;    /* of the first byte that changes */
    off_t old_size;
    size_t old_length;
    unsigned char *old; /* owned */
    size_t length;      /* asked for, of a write */
    bool is_directory;
    bool truncates; /* an open call that empties the file */
    char path[PATH_MAX];
    char to[PATH_MAX];
    char saved[PATH_MAX]; /* another link to what a rename or a removal takes away; empty if there is none */
};

/* changes.c: the directory without a slash at its end, and the journal, or NULL for none. */
void watch_directory(const char *directory, const char *journal);
/* Whether the call changes a file in the directory. If so, fills in the change. */
bool begin_change(const struct call *call, struct change *change);
/* Records the change, which returned `result`, and frees it. */
void end_change(const struct call *call, struct change *change, int64_t result);
/* Does the first half of a write, as a crash in the middle of it does. */
void tear_change(const struct call *call, const struct change *change);

/* restore.c: brings the directory to a state in which a power cut may leave it. */
int restore(const char *directory, const char *journal, const unsigned *seed);

/* Prints the reason and ends the program. */
_Noreturn void fail(const char *what);

#endif
