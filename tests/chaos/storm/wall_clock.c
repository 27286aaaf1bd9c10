/* Loaded before a program's libraries: its wall clock is so far off as the file STORM_CLOCK says, and nothing else
   of its time is. (libfaketime takes hold of waits as well: Python's switch between threads then spins.) */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct off {
    _Atomic long long ahead; /* seconds, as it is to be */
    _Atomic long long told;  /* seconds, as the program last heard it */
};

static struct off *off;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("STORM_CLOCK");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *shared = mmap(NULL, sizeof *off, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED)
        off = shared;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*_Atomic real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (!failed && off && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        long long ahead = off->ahead;
        now->tv_sec += ahead;
        off->told = ahead;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    if (at)
        *at = exact.tv_sec;
    return exact.tv_sec;
}
