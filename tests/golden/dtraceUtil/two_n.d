/* NAME two -n say two lines
 * RUN $DTRACE -n 'BEGIN { exit(0); }' -n END 2>&1 >/dev/null | grep -c 'matched 1 probe'
 */

/* EXPECT
 * 2
 */
