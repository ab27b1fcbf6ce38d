/* A library for LD_PRELOAD with two models of a disk below the folder FAULTY_ROOT. Each process reads its own settings.

   Errors: the calls FAULTY_CALL (fsync, rename, write, open, mkdir, unlink) on paths that contain FAULTY_PART fail with
   the number FAULTY_ERROR, from the FAULTY_FIRST-th call on, FAULTY_COUNT times. With FAULTY_SHORT, a write takes only
   half of its bytes instead. Each fault is a line of the file FAULTY_LOG.

   Power cuts: the folder FAULTY_SHADOW holds what a power cut would leave: a file's bytes as of its last fsync, and a
   folder's names as of the folder's last fsync. `files` and `dirs` hold these by the identity of a file or folder, and
   `ids` the identities by inode; an inode without one is `i` and its number. With FAULTY_FORGETFUL, an fsync of a
   folder keeps nothing: the control that shows that the model notices what is not flushed. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATH_SIZE 4200
#define ID_SIZE 64
#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

static const char *root, *call, *part, *log_path, *shadow;
static long first, count, error_number;
static int is_short, is_forgetful, owner;
static long calls;

/* System calls that bypass the functions of this file. */
static int raw_open(const char *path, int flags) { return syscall(SYS_openat, AT_FDCWD, path, flags, 0644); }
static void raw_close(int file) { syscall(SYS_close, file); }
static void raw_write(int file, const char *data, size_t size) { if (syscall(SYS_write, file, data, size) < 0) return; }

static long number(const char *name, long otherwise) { const char *text = getenv(name); return text ? atol(text) : otherwise; }

static void read_settings(void) {
    if (owner == getpid()) return; /* after a fork, the settings may be others */
    owner = getpid();
    calls = 0;
    root = getenv("FAULTY_ROOT");
    call = getenv("FAULTY_CALL");
    part = getenv("FAULTY_PART");
    log_path = getenv("FAULTY_LOG");
    shadow = getenv("FAULTY_SHADOW");
    first = number("FAULTY_FIRST", 1);
    count = number("FAULTY_COUNT", 1);
    error_number = number("FAULTY_ERROR", EIO);
    is_short = getenv("FAULTY_SHORT") != NULL;
    is_forgetful = getenv("FAULTY_FORGETFUL") != NULL;
}

/* Let this process read its settings again. */
void faulty_disk_restart(void) { owner = 0; }

static int is_below(const char *path) {
    if (!root || !path || path[0] != '/') return 0; /* the harness uses absolute paths */
    size_t size = strlen(root);
    return !strncmp(path, root, size) && (path[size] == '/' || !path[size]);
}

static const char *path_of(int file, char *buffer) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, PATH_SIZE - 1);
    if (size < 0) return NULL;
    buffer[size] = 0;
    return buffer;
}

/* The absolute path of a name within an open folder. */
static const char *path_at(int folder, const char *name, char *buffer) {
    if (name[0] == '/' || folder == AT_FDCWD || !path_of(folder, buffer)) return name;
    size_t size = strlen(buffer);
    snprintf(buffer + size, PATH_SIZE - size, "/%s", name);
    return buffer;
}

/* Whether this call is to fail. */
static int strikes(const char *name, const char *path) {
    read_settings();
    if (!call || strcmp(call, name) || !is_below(path) || (part && !strstr(path, part))) return 0;
    long now = __sync_add_and_fetch(&calls, 1);
    if (now < first || now >= first + count) return 0;
    if (log_path) {
        char line[PATH_SIZE + 100];
        int size = snprintf(line, sizeof line, "%s %ld %s\n", name, now, path);
        int file = raw_open(log_path, O_WRONLY | O_APPEND | O_CREAT);
        raw_write(file, line, size);
        raw_close(file);
    }
    errno = error_number;
    return 1;
}

static void shadow_path(char *buffer, const char *folder, const char *name) {
    snprintf(buffer, PATH_SIZE, "%s/%s/%s", shadow, folder, name);
}

static void find_id(unsigned long inode, char *id) {
    char path[PATH_SIZE], name[32];
    snprintf(name, sizeof name, "%lu", inode);
    shadow_path(path, "ids", name);
    int file = raw_open(path, O_RDONLY);
    long size = file < 0 ? 0 : syscall(SYS_read, file, id, ID_SIZE - 1);
    if (file >= 0) raw_close(file);
    if (size > 0) id[size] = 0; else snprintf(id, ID_SIZE, "i%lu", inode);
}

/* Give a new file or folder an identity, since the disk may use an inode again. */
static void new_id(unsigned long inode) {
    char path[PATH_SIZE], name[32], id[ID_SIZE];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(name, sizeof name, "%lu", inode);
    int size = snprintf(id, sizeof id, "n%lu-%ld%09ld", inode, (long)now.tv_sec, now.tv_nsec);
    shadow_path(path, "ids", name);
    int file = raw_open(path, O_WRONLY | O_CREAT | O_TRUNC);
    raw_write(file, id, size);
    raw_close(file);
}

/* Keep the bytes of a file, or the names in a folder, as a power cut would leave them from now on. */
static void keep(int synced, const char *path) {
    struct stat about;
    char id[ID_SIZE], kept[PATH_SIZE], beside[PATH_SIZE + 40], bytes[65536];
    if (fstat(synced, &about)) return;
    int is_folder = S_ISDIR(about.st_mode);
    if (is_folder && is_forgetful) return;
    find_id(about.st_ino, id);
    shadow_path(kept, is_folder ? "dirs" : "files", id);
    snprintf(beside, sizeof beside, "%s.%d.%ld", kept, (int)getpid(), (long)syscall(SYS_gettid));
    int out = raw_open(beside, O_WRONLY | O_CREAT | O_TRUNC);
    if (is_folder) {
        DIR *folder = opendir(path);
        struct dirent *each;
        while (folder && (each = readdir(folder))) {
            if (!strcmp(each->d_name, ".") || !strcmp(each->d_name, "..")) continue;
            find_id(each->d_ino, id);
            int size = snprintf(bytes, sizeof bytes, "%s\t%d\t%s\n", id, each->d_type == DT_DIR, each->d_name);
            raw_write(out, bytes, size);
        }
        if (folder) closedir(folder);
    } else {
        long size;
        int in = raw_open(path, O_RDONLY);
        while ((size = syscall(SYS_read, in, bytes, sizeof bytes)) > 0) raw_write(out, bytes, size);
        raw_close(in);
    }
    raw_close(out);
    syscall(SYS_rename, beside, kept);
}

static int flushed(int done, int file) {
    char buffer[PATH_SIZE];
    const char *path = path_of(file, buffer);
    if (!done && shadow && is_below(path)) keep(file, path);
    return done;
}

int fsync(int file) {
    REAL(fsync);
    char buffer[PATH_SIZE];
    return strikes("fsync", path_of(file, buffer)) ? -1 : flushed(real(file), file);
}

int fdatasync(int file) {
    REAL(fdatasync);
    char buffer[PATH_SIZE];
    return strikes("fsync", path_of(file, buffer)) ? -1 : flushed(real(file), file);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return strikes("rename", to) ? -1 : real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL(renameat);
    char buffer[PATH_SIZE];
    return strikes("rename", path_at(to_folder, to, buffer)) ? -1 : real(from_folder, from, to_folder, to);
}

int unlink(const char *path) {
    REAL(unlink);
    return strikes("unlink", path) ? -1 : real(path);
}

int unlinkat(int folder, const char *name, int flags) {
    REAL(unlinkat);
    char buffer[PATH_SIZE];
    return strikes("unlink", path_at(folder, name, buffer)) ? -1 : real(folder, name, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    struct stat about;
    if (strikes("mkdir", path)) return -1;
    int done = real(path, mode);
    if (!done && shadow && is_below(path) && !stat(path, &about)) new_id(about.st_ino);
    return done;
}

ssize_t write(int file, const void *data, size_t size) {
    REAL(write);
    char buffer[PATH_SIZE];
    read_settings();
    if (call && !strcmp(call, "write") && strikes("write", path_of(file, buffer))) {
        if (!is_short || size < 2) return is_short ? real(file, data, size) : -1;
        return real(file, data, size / 2);
    }
    return real(file, data, size);
}

static int open_any(const char *path, int flags, mode_t mode) {
    struct stat about;
    read_settings();
    int changes = flags & (O_CREAT | O_WRONLY | O_RDWR);
    if (changes && strikes("open", path)) return -1;
    int is_new = shadow && is_below(path) && (flags & O_CREAT) && lstat(path, &about);
    int file = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (file >= 0 && is_new && !fstat(file, &about)) new_id(about.st_ino);
    return file;
}

#define OPEN(name, more)                                              \
    int name(const char *path, int flags, ...) {                      \
        mode_t mode = 0;                                              \
        if (flags & (O_CREAT | O_TMPFILE)) {                          \
            va_list rest;                                             \
            va_start(rest, flags);                                    \
            mode = va_arg(rest, mode_t);                              \
            va_end(rest);                                             \
        }                                                             \
        return open_any(path, flags | more, mode);                    \
    }
OPEN(open, 0)
OPEN(open64, O_LARGEFILE)
