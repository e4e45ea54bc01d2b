/* How a readers/writer lock is held: what lockstat's rw probes have as arg1 or arg2. */
inline int RW_WRITER = 0;
inline int RW_READER = 1;
