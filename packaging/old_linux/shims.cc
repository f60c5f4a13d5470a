// SPDX-License-Identifier: Apache-2.0
// What our libraries ask of Linux that glibc 2.28 has not: made of what it has. Each is named by the version that
// brought it. They are in the library that is linked with them and nobody else's: hidden, or local by
// cmake/exports.map.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#pragma GCC visibility push(hidden)
extern "C" {

// 2.33. The number is that of the form of struct stat.
#ifdef __x86_64__
constexpr int kForm = 1;
#else
constexpr int kForm = 0;
#endif
int __xstat(int form, const char* path, struct stat* info) __attribute__((visibility("default")));
int __lxstat(int form, const char* path, struct stat* info) __attribute__((visibility("default")));
int __fxstat(int form, int file, struct stat* info) __attribute__((visibility("default")));
int __fxstatat(int form, int folder, const char* path, struct stat* info, int flags)
    __attribute__((visibility("default")));

int stat(const char* path, struct stat* info) { return __xstat(kForm, path, info); }
int lstat(const char* path, struct stat* info) { return __lxstat(kForm, path, info); }
int fstat(int file, struct stat* info) { return __fxstat(kForm, file, info); }
int fstatat(int folder, const char* path, struct stat* info, int flags) {
  return __fxstatat(kForm, folder, path, info, flags);
}

// 2.32. False: counts of references stay atomic.
char __libc_single_threaded = 0;

// 2.30
pid_t gettid() { return static_cast<pid_t>(syscall(SYS_gettid)); }

// 2.30. A wait that ends at the same moment by the clock that a condition has from the start.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* end) {
  constexpr long kSecond = 1000000000;
  timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  const long nanoseconds = real.tv_nsec + end->tv_nsec - now.tv_nsec;  // between -1 s and 2 s
  const long seconds = nanoseconds < 0 ? -1 : nanoseconds / kSecond;
  const timespec there = {real.tv_sec + end->tv_sec - now.tv_sec + seconds, nanoseconds - seconds * kSecond};
  return pthread_cond_timedwait(condition, mutex, &there);
}

// 2.34. Closing a file that is not open is no error there.
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int from) {
  using Function = int (*)(posix_spawn_file_actions_t*, int);
  static const auto system =
      reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "posix_spawn_file_actions_addclosefrom_np"));
  if (system != nullptr) return system(actions, from);
  const long end = std::min(sysconf(_SC_OPEN_MAX), 4096L);
  int error = 0;
  for (int file = from; file < end && error == 0; ++file) error = posix_spawn_file_actions_addclose(actions, file);
  return error;
}

}  // extern "C"
#pragma GCC visibility pop
