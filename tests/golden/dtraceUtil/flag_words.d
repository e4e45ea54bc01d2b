/* NAME what turns an option on or off may be written in any case
 * RUN for v in on ON Yes tRUE 1 Set ENABLE enabled; do $DTRACE -x quiet=$v -n 'BEGIN { printf("%s", "q"); exit(0); }'; done; echo
 * RUN for v in off OFF No fALSE 0 Unset DISABLE disabled; do $DTRACE -qx quiet=$v -n 'BEGIN { printf("%s", "q"); exit(0); }' | wc -l; done
 * RUN $DTRACE -x quiet=maybe -n 'BEGIN { exit(0); }'; echo $?
 */
/* EXPECT
 * q
 * q
 * q
 * q
 * q
 * q
 * q
 * q
 *
 * 3
 * 3
 * 3
 * 3
 * 3
 * 3
 * 3
 * 3
 * 1
 */
/* STDERR
 * failed to set -x quiet: Invalid value for specified option
 */
