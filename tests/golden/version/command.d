/* NAME -V prints the version of the language
 * RUN $DTRACE -V | grep -o "Sun D [0-9.]*"
 */
BEGIN { exit(0); }
/* EXPECT
 * Sun D 1.13
 */
