/* Signal numbers of Linux on x86-64, for raise() and what carries signals. */
inline int SIGHUP = 1;
inline int SIGINT = 2;
inline int SIGQUIT = 3;
inline int SIGILL = 4;
inline int SIGTRAP = 5;
inline int SIGABRT = 6;
inline int SIGBUS = 7;
inline int SIGFPE = 8;
inline int SIGKILL = 9;
inline int SIGUSR1 = 10;
inline int SIGSEGV = 11;
inline int SIGUSR2 = 12;
inline int SIGPIPE = 13;
inline int SIGALRM = 14;
inline int SIGTERM = 15;
inline int SIGSTKFLT = 16;
inline int SIGCHLD = 17;
inline int SIGCONT = 18;
inline int SIGSTOP = 19;
inline int SIGTSTP = 20;
inline int SIGTTIN = 21;
inline int SIGTTOU = 22;
inline int SIGURG = 23;
inline int SIGXCPU = 24;
inline int SIGXFSZ = 25;
inline int SIGVTALRM = 26;
inline int SIGPROF = 27;
inline int SIGWINCH = 28;
inline int SIGIO = 29;
inline int SIGPWR = 30;
inline int SIGSYS = 31;
inline int SIGIOT = SIGABRT;
inline int SIGPOLL = SIGIO;
inline int SIGRTMIN = 34;
inline int SIGRTMAX = 64;

/* Why a signal came: si_code of SIGCHLD. */
inline int CLD_EXITED = 1;
inline int CLD_KILLED = 2;
inline int CLD_DUMPED = 3;
inline int CLD_TRAPPED = 4;
inline int CLD_STOPPED = 5;
inline int CLD_CONTINUED = 6;

/* Machine faults, as proc:::fault has them. */
inline int FLTILL = 1;
inline int FLTPRIV = 2;
inline int FLTBPT = 3;
inline int FLTTRACE = 4;
inline int FLTACCESS = 5;
inline int FLTBOUNDS = 6;
inline int FLTIOVF = 7;
inline int FLTIZDIV = 8;
inline int FLTFPE = 9;
inline int FLTSTACK = 10;
inline int FLTPAGE = 11;
inline int FLTWATCH = 12;
