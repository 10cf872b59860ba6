/// The C library's functions that open files, each followed by its own: which files a rank writes. C++ streams and
/// LibTorch's archives call these as well.

#include <dlfcn.h>
#include <fcntl.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "recorder.h"

namespace {

using accelerate::recorder::Recorder;

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void note(const char* path) {
  if (Recorder* const recorder = Recorder::active()) {
    recorder->wrote(path);
  }
}

void note(const char* path, int flags) {
  if ((flags & O_ACCMODE) != O_RDONLY) {
    note(path);
  }
}

void note(const char* path, const char* mode) {
  if (std::strpbrk(mode, "wa+") != nullptr) {
    note(path);
  }
}

mode_t permissions(int flags, va_list arguments) { return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0; }

}  // namespace

#define ACCELERATE_EXPORT extern "C" __attribute__((visibility("default")))

#define ACCELERATE_RECORD_FOPEN(name)                                \
  ACCELERATE_EXPORT FILE* name(const char* path, const char* mode) { \
    static auto* const original = next<decltype(name)>(#name);       \
    FILE* const file = original(path, mode);                         \
    if (file != nullptr) {                                           \
      note(path, mode);                                              \
    }                                                                \
    return file;                                                     \
  }
ACCELERATE_RECORD_FOPEN(fopen)
ACCELERATE_RECORD_FOPEN(fopen64)

#define ACCELERATE_RECORD_OPEN(name)                                       \
  ACCELERATE_EXPORT int name(const char* path, int flags, ...) {           \
    static auto* const original = next<int(const char*, int, ...)>(#name); \
    va_list arguments;                                                     \
    va_start(arguments, flags);                                            \
    const mode_t mode = permissions(flags, arguments);                     \
    va_end(arguments);                                                     \
    const int file = original(path, flags, mode);                          \
    if (file >= 0) {                                                       \
      note(path, flags);                                                   \
    }                                                                      \
    return file;                                                           \
  }
ACCELERATE_RECORD_OPEN(open)
ACCELERATE_RECORD_OPEN(open64)

ACCELERATE_EXPORT int creat(const char* path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
