// How jemalloc, which the program is linked with, treats memory: a service runs for months, with dozens of
// threads that allocate packets, pictures and messages of all sizes. With glibc's heaps its memory grew for
// hours (docs/performance.md).

/// Read by jemalloc before `main`: two arenas, and what was freed goes back to the kernel within seconds,
/// also what had more than 8 MiB: otherwise that goes back at once, and bulk messages of that size cost twice
/// as much.
// NOLINTNEXTLINE(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
extern "C" const char* malloc_conf;
const char* malloc_conf =
    "narenas:2,background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:0,oversize_threshold:0";
