//! The functions with which PostgreSQL makes its files durable or longer, and the functions with
//! which it reads the time of day.
//!
//! An fsync is `fsync`, `fdatasync`, or a write to a file that was opened with `O_DSYNC` or
//! `O_SYNC`. So every `wal_sync_method` of Linux is slowed down. This library does not see writes
//! to C's own streams (`fwrite`), `copy_file_range`, or writes to mapped memory. PostgreSQL uses
//! none of these for tables, indexes or the log. Signal handlers read the time, so these functions
//! must not allocate.

#![allow(
    unsafe_code,
    reason = "a function with the name of one of the C library's is exported without mangling and takes raw pointers, and what it does \
              is to call that one, found by the linker; nothing in std does either"
)]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    io::Write,
    sync::atomic::{AtomicPtr, Ordering},
    time::Duration,
};

use libc::{clockid_t, iovec, off_t, size_t, ssize_t, time_t, timespec, timeval};

use crate::page::{CLOCK, FSYNC, LENGTH, LONGEST, PATH, WORDS};

const FILE: &CStr = c"TRUNKLINE_DISK_FILE";

/// The next function of this name after this library. It belongs to the C library or to another
/// preloaded library.
struct Next(&'static CStr, AtomicPtr<c_void>);

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self(name, AtomicPtr::new(std::ptr::null_mut()))
    }

    fn get(&self) -> *mut c_void {
        let mut found = self.1.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: the name ends with a zero byte. A caller reached this library through this
            // name, so a further definition follows.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.0.as_ptr()) };
            if found.is_null() {
                std::process::abort();
            }
            self.1.store(found, Ordering::Relaxed);
        }
        found
    }
}

/// The settings file as this process sees it. The first call maps it, and forked processes inherit
/// the mapping. Reading a word needs no system call, lock or allocation. This is necessary because
/// PostgreSQL writes in signal handlers, and because a disk at normal speed should cost nothing.
struct Page(*const u64);

impl Page {
    fn find() -> Option<Self> {
        /// The mapped page, or `NOWHERE` if there is none.
        static FOUND: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());
        const NOWHERE: *mut u64 = std::ptr::dangling_mut();
        let mut found = FOUND.load(Ordering::Acquire);
        if found.is_null() {
            found = Self::map().unwrap_or(NOWHERE);
            FOUND.store(found, Ordering::Release);
        }
        (found != NOWHERE).then_some(Self(found))
    }

    fn map() -> Option<*mut u64> {
        // SAFETY: the environment of a PostgreSQL process does not change while it works, and the
        // path in it ends with a zero byte. A shorter file is ignored, because some of its words
        // would lie outside the mapping. errno is restored, because a caller may read it after a
        // successful call.
        unsafe {
            let before = *libc::__errno_location();
            let path = libc::getenv(FILE.as_ptr());
            let file = if path.is_null() { -1 } else { libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC) };
            let mut mapped = libc::MAP_FAILED;
            if file >= 0 {
                let mut told: libc::stat = std::mem::zeroed();
                if libc::fstat(file, &raw mut told) == 0 && usize::try_from(told.st_size) == Ok(WORDS * 8) {
                    mapped = libc::mmap(std::ptr::null_mut(), WORDS * 8, libc::PROT_READ, libc::MAP_SHARED, file, 0);
                }
                libc::close(file);
            }
            *libc::__errno_location() = before;
            (mapped != libc::MAP_FAILED).then_some(mapped.cast())
        }
    }

    fn word(&self, at: usize) -> u64 {
        // SAFETY: the page has `WORDS` words, is page-aligned, and stays mapped. The writer writes
        // whole words.
        unsafe { std::ptr::read_volatile(self.0.add(at.min(WORDS - 1))) }
    }

    fn fsync(&self) -> Duration {
        Duration::from_micros(self.word(FSYNC))
    }

    /// Copies the path below which the disk is full into `room`, and returns it.
    fn full_below<'a>(&self, room: &'a mut [u8; LONGEST]) -> Option<&'a [u8]> {
        let length = self.word(LENGTH);
        for (at, eight) in room.chunks_exact_mut(8).enumerate() {
            eight.copy_from_slice(&self.word(PATH + at).to_ne_bytes());
        }
        // Returns no path if the path changed during the copy. The next call then sees the new
        // path.
        let same = length == self.word(LENGTH) && length > 0;
        room.get(..usize::try_from(length).ok()?).filter(|_| same)
    }
}

/// Shifts a time of day, in seconds and microseconds, by the clock offset in the page.
fn moved(seconds: i64, micros: i64) -> (i64, i64) {
    let ahead = Page::find().map_or(0, |page| page.word(CLOCK).cast_signed());
    let all = seconds.saturating_mul(1_000_000).saturating_add(micros).saturating_add(ahead);
    (all.div_euclid(1_000_000), all.rem_euclid(1_000_000))
}

/// Returns the time of the kernel's own clock, which no preloaded library shifts.
fn now() -> Duration {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in a time with this layout.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Sleeps until this time. A signal does not end the sleep, just as it does not speed up a disk.
fn sleep_until(end: Duration) {
    let time =
        timespec { tv_sec: end.as_secs().try_into().unwrap_or(libc::time_t::MAX), tv_nsec: end.subsec_nanos().into() };
    while now() < end {
        // SAFETY: the kernel reads a time with this layout. The remaining time is not needed.
        unsafe {
            libc::syscall(
                libc::SYS_clock_nanosleep,
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const time,
                std::ptr::null_mut::<timespec>(),
            )
        };
    }
}

/// Makes a call take at least the minimum time, unless it fails.
fn slow<T: PartialOrd + Default>(call: impl FnOnce() -> T) -> T {
    let least = Page::find().map_or(Duration::ZERO, |page| page.fsync());
    if least.is_zero() {
        return call();
    }
    let began = now();
    let result = call();
    if result >= T::default() {
        sleep_until(began + least);
    }
    result
}

/// Writes `length` bytes, at the file's position if `at` is `None`. The write fails if the disk is
/// full, and is slow if it makes the bytes durable.
fn write_to(fd: c_int, at: Option<off_t>, length: size_t, call: impl FnOnce() -> ssize_t) -> ssize_t {
    if is_full(fd, at, length) {
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() = libc::ENOSPC };
        return -1;
    }
    if Page::find().is_none_or(|page| page.fsync().is_zero()) {
        return call();
    }
    // SAFETY: the number may not belong to an open file. Then the call fails, and the file counts
    // as not durable.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    // `O_SYNC` includes the bit of `O_DSYNC`.
    if flags >= 0 && flags & libc::O_DSYNC != 0 { slow(call) } else { call() }
}

/// Returns true if the write would extend a file below the folder whose disk is full.
fn is_full(fd: c_int, at: Option<off_t>, length: size_t) -> bool {
    let Some(page) = Page::find().filter(|page| page.word(LENGTH) > 0) else { return false };
    let (mut room, mut path) = ([0; LONGEST], [0_u8; LONGEST + 1]);
    let Some(folder) = page.full_below(&mut room) else { return false };
    let mut name = [0_u8; 32];
    // SAFETY: the name is shorter than its buffer, whose last byte stays zero. The kernel's results
    // fit into the path and into the stat, which consists of plain numbers. The number of a closed
    // file yields no path.
    unsafe {
        if write!(&mut name[..31], "/proc/self/fd/{fd}").is_err() {
            return false;
        }
        let told = libc::readlink(name.as_ptr().cast::<c_char>(), path.as_mut_ptr().cast(), path.len());
        let path = &path[..usize::try_from(told).unwrap_or(0)];
        // The file must be inside the folder. Its path may also begin with the name of the folder
        // by chance.
        if path.strip_prefix(folder).is_none_or(|rest| rest.first() != Some(&b'/')) {
            return false;
        }
        let mut file: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &raw mut file) != 0 {
            return false;
        }
        let appends = libc::fcntl(fd, libc::F_GETFL) & libc::O_APPEND != 0;
        let at = at.unwrap_or_else(|| if appends { file.st_size } else { libc::lseek(fd, 0, libc::SEEK_CUR) });
        at.saturating_add(off_t::try_from(length).unwrap_or(off_t::MAX)) > file.st_size
    }
}

/// Adds the bytes of all parts of a vector.
///
/// # Safety
///
/// `parts` points to `count` parts.
unsafe fn total(parts: *const iovec, count: c_int) -> size_t {
    let Ok(count) = usize::try_from(count) else { return 0 };
    // SAFETY: the caller guarantees that `parts` points to `count` parts.
    (0..count).map(|part| unsafe { (*parts.add(part)).iov_len }).sum()
}

type Sync = unsafe extern "C" fn(c_int) -> c_int;
type WriteAll = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
type WriteAt = unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
type WriteParts = unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
type WritePartsAt = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
type Reserve = unsafe extern "C" fn(c_int, off_t, off_t) -> c_int;
type Allocate = unsafe extern "C" fn(c_int, c_int, off_t, off_t) -> c_int;
type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;
type Gettimeofday = unsafe extern "C" fn(*mut timeval, *mut c_void) -> c_int;

// SAFETY of all functions below: each function has the signature of its namesake in the 64-bit C
// library, where `off_t` is `off64_t`. It is called in the same way as its namesake, and passes its
// arguments on. `Next` has found a function with exactly this name.

/// Calls the C library's `fsync`, slowed down.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    static NEXT: Next = Next::new(c"fsync");
    slow(|| unsafe { std::mem::transmute::<*mut c_void, Sync>(NEXT.get())(fd) })
}

/// Calls the C library's `fdatasync`, slowed down.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    static NEXT: Next = Next::new(c"fdatasync");
    slow(|| unsafe { std::mem::transmute::<*mut c_void, Sync>(NEXT.get())(fd) })
}

/// Calls the C library's `write`, as if on the slow or full disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, length: size_t) -> ssize_t {
    static NEXT: Next = Next::new(c"write");
    let call = || unsafe { std::mem::transmute::<*mut c_void, WriteAll>(NEXT.get())(fd, bytes, length) };
    write_to(fd, None, length, call)
}

/// Calls the C library's `pwrite`, as if on the slow or full disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(fd: c_int, bytes: *const c_void, length: size_t, at: off_t) -> ssize_t {
    static NEXT: Next = Next::new(c"pwrite");
    let call = || unsafe { std::mem::transmute::<*mut c_void, WriteAt>(NEXT.get())(fd, bytes, length, at) };
    write_to(fd, Some(at), length, call)
}

/// Calls `pwrite`, under the C library's name for large files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, bytes: *const c_void, length: size_t, at: off_t) -> ssize_t {
    unsafe { pwrite(fd, bytes, length, at) }
}

/// Calls the C library's `writev`, as if on the slow or full disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    static NEXT: Next = Next::new(c"writev");
    let call = || unsafe { std::mem::transmute::<*mut c_void, WriteParts>(NEXT.get())(fd, parts, count) };
    write_to(fd, None, unsafe { total(parts, count) }, call)
}

/// Calls the C library's `pwritev`, as if on the slow or full disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(fd: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t {
    static NEXT: Next = Next::new(c"pwritev");
    let call = || unsafe { std::mem::transmute::<*mut c_void, WritePartsAt>(NEXT.get())(fd, parts, count, at) };
    write_to(fd, Some(at), unsafe { total(parts, count) }, call)
}

/// Calls `pwritev`, under the C library's name for large files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(fd: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t {
    unsafe { pwritev(fd, parts, count, at) }
}

/// Calls the C library's `posix_fallocate`, as if on the full disk. It returns the error number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_fallocate(fd: c_int, at: off_t, length: off_t) -> c_int {
    static NEXT: Next = Next::new(c"posix_fallocate");
    if is_full(fd, Some(at), length.try_into().unwrap_or(0)) {
        return libc::ENOSPC;
    }
    unsafe { std::mem::transmute::<*mut c_void, Reserve>(NEXT.get())(fd, at, length) }
}

/// Calls `posix_fallocate`, under the C library's name for large files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_fallocate64(fd: c_int, at: off_t, length: off_t) -> c_int {
    unsafe { posix_fallocate(fd, at, length) }
}

/// Calls the C library's `fallocate`, as if on the full disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fallocate(fd: c_int, how: c_int, at: off_t, length: off_t) -> c_int {
    static NEXT: Next = Next::new(c"fallocate");
    if is_full(fd, Some(at), length.try_into().unwrap_or(0)) {
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() = libc::ENOSPC };
        return -1;
    }
    unsafe { std::mem::transmute::<*mut c_void, Allocate>(NEXT.get())(fd, how, at, length) }
}

/// Calls `fallocate`, under the C library's name for large files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fallocate64(fd: c_int, how: c_int, at: off_t, length: off_t) -> c_int {
    unsafe { fallocate(fd, how, at, length) }
}

/// Calls the C library's `clock_gettime`, and shifts the time of day. Clocks that measure durations
/// are not shifted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    static NEXT: Next = Next::new(c"clock_gettime");
    unsafe {
        let result = std::mem::transmute::<*mut c_void, ClockGettime>(NEXT.get())(clock, time);
        if result == 0 && matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE) {
            let (seconds, micros) = moved((*time).tv_sec, (*time).tv_nsec / 1000);
            ((*time).tv_sec, (*time).tv_nsec) = (seconds, micros * 1000 + (*time).tv_nsec % 1000);
        }
        result
    }
}

/// Calls the C library's `gettimeofday`, and shifts the time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    static NEXT: Next = Next::new(c"gettimeofday");
    unsafe {
        let result = std::mem::transmute::<*mut c_void, Gettimeofday>(NEXT.get())(time, zone);
        if result == 0 && !time.is_null() {
            ((*time).tv_sec, (*time).tv_usec) = moved((*time).tv_sec, (*time).tv_usec);
        }
        result
    }
}

/// Returns the C library's time, shifted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(at: *mut time_t) -> time_t {
    let mut now = timeval { tv_sec: 0, tv_usec: 0 };
    unsafe { gettimeofday(&raw mut now, std::ptr::null_mut()) };
    if !at.is_null() {
        unsafe { *at = now.tv_sec };
    }
    now.tv_sec
}
