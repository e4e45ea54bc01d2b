/* NAME options without a program are told so
 * RUN for o in -q -C -v -Z "-x strsize=10"; do $DTRACE $o; echo $?; done
 */
/* EXPECT
 * 1
 * 1
 * 1
 * 1
 * 1
 */
/* STDERR
 * no probes specified
 * no probes specified
 * no probes specified
 * no probes specified
 * no probes specified
 */
