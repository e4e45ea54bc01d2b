/* NAME a version that there never was
 * RUN $DTRACE -x version=1.2.9 -n BEGIN; $DTRACE -x version=1 -n BEGIN; $DTRACE -x version=9.0 -n BEGIN; true
 */

/* EXPECT
 */
/* STDERR
 * failed to set -x version: Requested version is not supported by compiler
 * failed to set -x version: Version is not properly formatted or is too large
 * failed to set -x version: Requested version is not supported by compiler
 */
