/* Flags and numbers of Linux's system calls on x86-64. */
inline int O_ACCMODE = 0x3;
inline int O_RDONLY = 0x0;
inline int O_WRONLY = 0x1;
inline int O_RDWR = 0x2;
inline int O_CREAT = 0x40;
inline int O_EXCL = 0x80;
inline int O_NOCTTY = 0x100;
inline int O_TRUNC = 0x200;
inline int O_APPEND = 0x400;
inline int O_NONBLOCK = 0x800;
inline int O_NDELAY = O_NONBLOCK;
inline int O_DSYNC = 0x1000;
inline int O_DIRECT = 0x4000;
inline int O_LARGEFILE = 0x8000;
inline int O_DIRECTORY = 0x10000;
inline int O_NOFOLLOW = 0x20000;
inline int O_NOATIME = 0x40000;
inline int O_CLOEXEC = 0x80000;
inline int O_SYNC = 0x101000;
inline int O_RSYNC = O_SYNC;
inline int AT_FDCWD = -100;

inline int SEEK_SET = 0;
inline int SEEK_CUR = 1;
inline int SEEK_END = 2;

inline int PROT_READ = 1;
inline int PROT_WRITE = 2;
inline int PROT_EXEC = 4;
inline int MAP_SHARED = 1;
inline int MAP_PRIVATE = 2;
inline int MAP_FIXED = 0x10;
inline int MAP_ANONYMOUS = 0x20;

inline int CLONE_VM = 0x100;
inline int CLONE_FS = 0x200;
inline int CLONE_FILES = 0x400;
inline int CLONE_SIGHAND = 0x800;
inline int CLONE_VFORK = 0x4000;
inline int CLONE_THREAD = 0x10000;
