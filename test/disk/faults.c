/*
 * The tests preload this library into a service. It stalls, fails or records calls on files below
 * FAULTS_UNDER, and shifts the clock. The integers of the mapped file FAULTS_CONTROL control it:
 * see faults.ts. With FAULTS_RECORD it records writes, flushes, creations, renames and removals of
 * files, and the output on standard output, in one order: see power-loss-replay.ts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FILES 4096
enum { FLUSH, WRITE, READ, ERROR, CLOCK_S, STALLED, FAILED, FIELDS };
enum { AS_EVER, STALLS, FAILS };

static int none[FIELDS];
static volatile int *control = none;
static const char *under;
static size_t under_length;
static int record = -1;
static char *paths[FILES];
static ino_t inodes[FILES];
/* For files written through a stream: the number of recorded bytes, plus one. */
static off_t noted[FILES];
static unsigned flushes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int begun;
static void begin(void);

/* Not every compiler has constructors; the first call happens before the process has threads. */
#define REAL(result, name, ...)                          \
  static result (*real)(__VA_ARGS__);                    \
  if (!begun) begin();                                   \
  if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static void begin(void) {
  begun = 1;
  const char *name = getenv("FAULTS_CONTROL");
  int file = name ? open(name, O_RDWR) : -1;
  void *map = file < 0 ? MAP_FAILED
    : mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) control = map;
  name = getenv("FAULTS_RECORD");
  if (name) record = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
  under = getenv("FAULTS_UNDER");
  under_length = under ? strlen(under) : 0;
}

#define REAL2(result, name, ...)                         \
  static result (*real2)(__VA_ARGS__);                   \
  if (!real2) real2 = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static int watched(const char *path) {
  return under && path && !strncmp(path, under, under_length);
}

/* Appends one entry to the record: a line, and some bytes. */
static void note(const void *bytes, size_t length, const char *format, ...) {
  REAL(ssize_t, writev, int, const struct iovec *, int);
  char line[2 * PATH_MAX];
  if (record < 0) return;
  va_list list;
  va_start(list, format);
  int size = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  struct iovec parts[] = { { line, size }, { (void *)bytes, length }, { "\n", 1 } };
  if (real(record, parts, 3) != (ssize_t)(size + length + 1)) abort();
}

static void count(int field, int more) {
  static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&counting);
  control[field] += more;
  pthread_mutex_unlock(&counting);
}

/* Waits while calls of this kind stall; returns whether the call must fail. */
static int faulty(int kind) {
  int stalled = 0;
  while (control[kind] == STALLS) {
    if (!stalled++) count(STALLED, 1);
    usleep(5000);
  }
  if (stalled) count(STALLED, -1);
  if (control[kind] != FAILS) return 0;
  count(FAILED, 1);
  errno = control[ERROR];
  return 1;
}

/* Some functions close files without a call that this library intercepts: check the inode. */
static const char *path_of(int file) {
  struct stat found;
  if (file < 0 || file >= FILES || !paths[file]) return NULL;
  return fstat(file, &found) || found.st_ino != inodes[file] ? NULL : paths[file];
}

static int opened(int file, const char *path, int was_there, int flags) {
  if (file < 0 || file >= FILES || !watched(path)) return file;
  pthread_mutex_lock(&lock);
  free(paths[file]);
  paths[file] = strdup(path);
  noted[file] = 0;
  struct stat found;
  inodes[file] = fstat(file, &found) ? 0 : found.st_ino;
  if (!was_there) note("", 0, "C %s\n", path);
  else if (flags & O_TRUNC) note("", 0, "T 0 %s\n", path);
  pthread_mutex_unlock(&lock);
  return file;
}

#define OPEN(name)                                                            \
  int name(const char *path, int flags, ...) {                                \
    REAL(int, name, const char *, int, mode_t);                               \
    va_list list;                                                             \
    va_start(list, flags);                                                    \
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;                 \
    va_end(list);                                                             \
    int was_there = !watched(path) || !access(path, F_OK);                    \
    return opened(real(path, flags, mode), path, was_there, flags);           \
  }
OPEN(open)
OPEN(open64)

static off_t end_of(int file) {
  if (fcntl(file, F_GETFL) & O_APPEND) {
    struct stat found;
    return fstat(file, &found) ? 0 : found.st_size;
  }
  return lseek(file, 0, SEEK_CUR);
}

static int real_close(int file) {
  REAL(int, close, int);
  return real(file);
}

/* Records bytes that a stream wrote without an intercepted call; streams only append. */
static void catch_up(int file) {
  REAL(ssize_t, pread, int, void *, size_t, off_t);
  static char bytes[1 << 16];
  REAL2(int, open64, const char *, int, mode_t);
  if (!noted[file] || record < 0) return;
  int own = real2(paths[file], O_RDONLY | O_CLOEXEC, 0);
  if (own < 0) return;
  for (ssize_t length; (length = real(own, bytes, sizeof bytes, noted[file] - 1)) > 0;) {
    note(bytes, length, "W %lld %zd %s\n", (long long)noted[file] - 1, length, paths[file]);
    noted[file] += length;
  }
  real_close(own);
}

#define STREAM(name)                                                  \
  FILE *name(const char *path, const char *mode) {                    \
    REAL(FILE *, name, const char *, const char *);                   \
    int was_there = !watched(path) || !access(path, F_OK);            \
    FILE *stream = real(path, mode);                                  \
    if (!stream || !watched(path)) return stream;                     \
    int file = fileno(stream);                                        \
    opened(file, path, was_there, *mode == 'w' ? O_TRUNC : 0);        \
    if (file < FILES && *mode != 'r') noted[file] = 1 + end_of(file); \
    return stream;                                                    \
  }
STREAM(fopen)
STREAM(fopen64)

#define FLUSHING_STREAM(name)                                        \
  int name(FILE *stream) {                                           \
    REAL(int, name, FILE *);                                         \
    if (stream && path_of(fileno(stream)) && faulty(WRITE)) return EOF; \
    return real(stream);                                             \
  }
FLUSHING_STREAM(fflush)
FLUSHING_STREAM(fflush_unlocked)

int fclose(FILE *stream) {
  REAL(int, fclose, FILE *);
  int file = fileno(stream);
  if (path_of(file)) {
    fflush(stream);
    pthread_mutex_lock(&lock);
    catch_up(file);
    free(paths[file]);
    paths[file] = NULL;
    pthread_mutex_unlock(&lock);
  }
  return real(stream);
}

int close(int file) {
  if (path_of(file)) {
    pthread_mutex_lock(&lock);
    free(paths[file]);
    paths[file] = NULL;
    pthread_mutex_unlock(&lock);
  }
  return real_close(file);
}

ssize_t write(int file, const void *bytes, size_t length) {
  REAL(ssize_t, write, int, const void *, size_t);
  if (file == STDOUT_FILENO && record >= 0) {
    pthread_mutex_lock(&lock);
    note(bytes, length, "S %zu\n", length);
    pthread_mutex_unlock(&lock);
  }
  if (!path_of(file)) return real(file, bytes, length);
  if (faulty(WRITE)) return -1;
  pthread_mutex_lock(&lock);
  off_t at = end_of(file);
  ssize_t done = real(file, bytes, length);
  if (done > 0) note(bytes, done, "W %lld %zd %s\n", (long long)at, done, paths[file]);
  pthread_mutex_unlock(&lock);
  return done;
}

#define PWRITE(name, offset)                                                           \
  ssize_t name(int file, const void *bytes, size_t length, offset at) {                \
    REAL(ssize_t, name, int, const void *, size_t, offset);                            \
    if (!path_of(file)) return real(file, bytes, length, at);                          \
    if (faulty(WRITE)) return -1;                                                      \
    pthread_mutex_lock(&lock);                                                         \
    ssize_t done = real(file, bytes, length, at);                                      \
    if (done > 0) note(bytes, done, "W %lld %zd %s\n", (long long)at, done, paths[file]); \
    pthread_mutex_unlock(&lock);                                                       \
    return done;                                                                       \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PREAD(name, offset)                                              \
  ssize_t name(int file, void *bytes, size_t length, offset at) {        \
    REAL(ssize_t, name, int, void *, size_t, offset);                    \
    if (path_of(file) && faulty(READ)) return -1;                        \
    return real(file, bytes, length, at);                                \
  }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

ssize_t read(int file, void *bytes, size_t length) {
  REAL(ssize_t, read, int, void *, size_t);
  if (path_of(file) && faulty(READ)) return -1;
  return real(file, bytes, length);
}

/* When a flush has ended, every write before its start is durable. */
#define FLUSHING(name)                                       \
  int name(int file) {                                       \
    REAL(int, name, int);                                    \
    if (!path_of(file)) return real(file);                   \
    pthread_mutex_lock(&lock);                               \
    unsigned own = flushes++;                                \
    catch_up(file);                                          \
    note("", 0, "B %u %s\n", own, paths[file]);              \
    pthread_mutex_unlock(&lock);                             \
    int failed = faulty(FLUSH) ? -1 : real(file);            \
    if (!failed) {                                           \
      pthread_mutex_lock(&lock);                             \
      note("", 0, "E %u\n", own);                            \
      pthread_mutex_unlock(&lock);                           \
    }                                                        \
    return failed;                                           \
  }
FLUSHING(fsync)
FLUSHING(fdatasync)

#define CUT(name, offset)                                                        \
  int name(int file, offset size) {                                              \
    REAL(int, name, int, offset);                                                \
    pthread_mutex_lock(&lock);                                                   \
    int failed = real(file, size);                                               \
    if (!failed && path_of(file)) note("", 0, "T %lld %s\n", (long long)size, paths[file]); \
    pthread_mutex_unlock(&lock);                                                 \
    return failed;                                                               \
  }
CUT(ftruncate, off_t)
CUT(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
  REAL(int, rename, const char *, const char *);
  pthread_mutex_lock(&lock);
  int failed = real(from, to);
  if (!failed && watched(from)) {
    note(to, strlen(to), "R %zu %s\n", strlen(to), from);
    for (int file = 0; file < FILES; file++)
      if (paths[file] && !strcmp(paths[file], from)) {
        free(paths[file]);
        paths[file] = strdup(to);
      }
  }
  pthread_mutex_unlock(&lock);
  return failed;
}

#define NAMING(name, letter, declared, given)                        \
  int name declared {                                                \
    REAL(int, name, const char *, mode_t);                           \
    pthread_mutex_lock(&lock);                                       \
    int failed = real given;                                         \
    if (!failed && watched(path)) note("", 0, letter " %s\n", path); \
    pthread_mutex_unlock(&lock);                                     \
    return failed;                                                   \
  }
NAMING(mkdir, "M", (const char *path, mode_t mode), (path, mode))
NAMING(unlink, "U", (const char *path), (path, 0))
NAMING(rmdir, "U", (const char *path), (path, 0))

int clock_gettime(clockid_t which, struct timespec *now) {
  REAL(int, clock_gettime, clockid_t, struct timespec *);
  int failed = real(which, now);
  if (!failed && which == CLOCK_REALTIME) now->tv_sec += control[CLOCK_S];
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  REAL(int, gettimeofday, struct timeval *, void *);
  int failed = real(now, zone);
  if (!failed) now->tv_sec += control[CLOCK_S];
  return failed;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

/* A wait until a time of the shifted clock. */
int pthread_cond_timedwait(pthread_cond_t *restrict change, pthread_mutex_t *restrict held,
                           const struct timespec *restrict until) {
  REAL(int, pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  struct timespec own = *until;
  /* Smaller times are of the monotonic clock. */
  if (own.tv_sec > 1000000000) own.tv_sec -= control[CLOCK_S];
  return real(change, held, &own);
}
