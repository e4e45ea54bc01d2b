/* NAME a library that depends on one that is not there is an error
 * RUN mkdir L; printf '#pragma D depends_on library nowhere.d\n' > L/a.d; $DTRACE -x errtags -L L -n 'BEGIN { exit(0); }'; echo $?
 */
/* EXPECT
 * 1
 */
/* STDERR
 * [D_PRAGMA_DEPEND] "L/a.d", line 1: invalid library dependency: there is no library nowhere.d
 */
