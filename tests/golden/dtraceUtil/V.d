/* NAME -V prints the version of D
 * RUN $DTRACE -V | grep -c ': Sun D 1\.[0-9]'
 */

/* EXPECT
 * 1
 */
