/* Takes back what a power cut may take: every change that was not synced. */

#define _GNU_SOURCE
#include "disk_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a disk writes as one. */
#define SECTOR 512

struct record {
    char kind;
    unsigned long long inode, directory;
    long long offset, old_size;
    size_t old_length, new_length;
    int is_directory;
    char *path, *to, *saved;
    const char *old, *new;
    bool is_durable;
};

struct open_inode {
    ino_t inode;
    int file;
};

static struct record *records;
static size_t record_count;
static struct open_inode *inodes;
static size_t inode_count;

static void *grown(void *list, size_t count, size_t size) {
    /* In steps of a power of two. */
    if (count & (count - 1)) return list;
    void *larger = realloc(list, (count ? 2 * count : 1) * size);
    if (!larger) fail("memory");
    return larger;
}

static char *read_journal(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status)) fail(path);
    *length = (size_t)status.st_size;
    char *text = malloc(*length + 1);
    if (!text || fread(text, 1, *length, file) != *length) fail(path);
    fclose(file);
    return text;
}

/* Reads the records. One that the end of the program cut off has not happened. */
static void parse(char *at, char *end) {
    while (at < end) {
        char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end) return;
        *line_end = 0;
        struct record record = { 0 };
        char *fields[11];
        for (int i = 0; i < 11; i++) {
            if (!(fields[i] = strsep(&at, "\t"))) {
                errno = EINVAL;
                fail("the journal");
            }
        }
        record.kind = fields[0][0];
        record.inode = strtoull(fields[1], NULL, 10);
        record.directory = strtoull(fields[2], NULL, 10);
        record.offset = strtoll(fields[3], NULL, 10);
        record.old_size = strtoll(fields[4], NULL, 10);
        record.old_length = strtoull(fields[5], NULL, 10);
        record.new_length = strtoull(fields[6], NULL, 10);
        record.is_directory = atoi(fields[7]);
        record.path = fields[8];
        record.to = fields[9];
        record.saved = fields[10];
        record.old = line_end + 1;
        record.new = record.old + record.old_length;
        if ((size_t)(end - record.old) < record.old_length + record.new_length) return;
        at = (char *)record.new + record.new_length;
        records = grown(records, record_count, sizeof *records);
        records[record_count++] = record;
    }
}

static bool is_of_content(const struct record *record) { return record->kind == 'W' || record->kind == 'T'; }

/* A content is durable when its file was synced later, a name when its directory was. */
static void find_durable(void) {
    for (size_t i = 0; i < record_count; i++) {
        if (records[i].kind != 'S') continue;
        for (size_t j = 0; j < i; j++) {
            struct record *earlier = &records[j];
            bool matches = is_of_content(earlier) ? earlier->inode == records[i].inode
                                                  : earlier->directory == records[i].inode;
            if (matches) earlier->is_durable = true;
        }
        records[i].is_durable = true;
    }
}

static int remember(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)place;
    if (type != FTW_F || !S_ISREG(status->st_mode)) return 0;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) fail(path);
    inodes = grown(inodes, inode_count, sizeof *inodes);
    inodes[inode_count++] = (struct open_inode){ status->st_ino, file };
    return 0;
}

/* The file, wherever it is now; -1 if it is gone. */
static int file_of(const struct record *record) {
    for (size_t i = 0; i < inode_count; i++)
        if (inodes[i].inode == record->inode) return inodes[i].file;
    return -1;
}

static bool names(const char *path, unsigned long long inode) {
    struct stat status;
    return lstat(path, &status) == 0 && status.st_ino == inode;
}

static void put(int file, const char *bytes, size_t length, off_t offset) {
    if (length > 0 && pwrite(file, bytes, length, offset) != (ssize_t)length) fail("restoring a file");
}

static void undo_content(const struct record *record) {
    int file = file_of(record);
    if (file < 0) return;
    if (ftruncate(file, record->old_size)) fail("restoring a file");
    put(file, record->old, record->old_length, record->offset);
}

static void undo_name(const struct record *record) {
    switch (record->kind) {
    case 'C':
        /* A socket, which is not recorded, may keep a directory. */
        if (record->is_directory) {
            if (rmdir(record->path) && errno != ENOENT && errno != ENOTEMPTY) fail(record->path);
        } else if (names(record->path, record->inode) && unlink(record->path)) {
            fail(record->path);
        }
        return;
    case 'R':
        if (!names(record->to, record->inode)) return;
        /* The directory of a socket may be gone. */
        if (rename(record->to, record->path) && errno != ENOENT) fail(record->to);
        if (record->saved[0] && link(record->saved, record->to)) fail(record->to);
        return;
    case 'U':
        if (record->is_directory && mkdir(record->path, 0700) && errno != EEXIST) fail(record->path);
        if (record->saved[0] && link(record->saved, record->path) && errno != EEXIST) fail(record->path);
        return;
    default:
        return;
    }
}

/* Some sectors of what was not synced have reached the disk. */
static void redo_some(const struct record *record) {
    int file = file_of(record);
    if (record->kind != 'W' || file < 0) return;
    for (size_t at = 0; at < record->new_length;) {
        size_t step = SECTOR - (size_t)((record->offset + (off_t)at) % SECTOR);
        if (step > record->new_length - at) step = record->new_length - at;
        if (rand() % 2) put(file, record->new + at, step, (off_t)record->offset + (off_t)at);
        at += step;
    }
}

int restore(const char *directory, const char *journal, const unsigned *seed) {
    char saved[PATH_MAX];
    size_t length;
    char *text = read_journal(journal, &length);
    parse(text, text + length);
    find_durable();
    snprintf(saved, sizeof saved, "%s.saved", journal);
    if (nftw(directory, remember, 32, FTW_PHYS) || nftw(saved, remember, 32, FTW_PHYS)) fail(directory);

    size_t names_lost = 0, contents_lost = 0, kept = 0;
    for (size_t i = 0; i < record_count; i++)
        if (!records[i].is_durable) is_of_content(&records[i]) ? contents_lost++ : names_lost++;
    /* A file system writes its names in order, so that the last ones are lost. */
    if (seed) {
        srand(*seed);
        kept = (size_t)rand() % (names_lost + 1);
    }
    size_t names_left = names_lost;
    for (size_t i = record_count; i-- > 0;) {
        if (records[i].is_durable) continue;
        if (is_of_content(&records[i])) undo_content(&records[i]);
        else if (names_left-- > kept) undo_name(&records[i]);
    }
    for (size_t i = 0; seed && i < record_count; i++)
        if (!records[i].is_durable) redo_some(&records[i]);
    printf("%zu changes, %zu of them not synced: %zu of contents and %zu of names, of which %zu are kept\n", record_count,
           contents_lost + names_lost, contents_lost, names_lost, kept);
    return 0;
}
