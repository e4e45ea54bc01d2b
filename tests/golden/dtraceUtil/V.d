/* NAME -V prints the version
 * RUN $DTRACE -V | sed 's/[0-9.]*$/N/'
 */

/* EXPECT
 * ringside: ringside N
 */
