/* NAME their values are looked at all the same
 * RUN for o in linkmode=x linktype=x late=x evaltime=x strip=1 pgmax=x; do $DTRACE -x $o -n BEGIN; done; true
 */

/* EXPECT
 */
/* STDERR
 * failed to set -x linkmode: Invalid value for specified option
 * failed to set -x linktype: Invalid value for specified option
 * failed to set -x late: Invalid value for specified option
 * failed to set -x evaltime: Invalid value for specified option
 * failed to set -x strip: Invalid value for specified option
 * failed to set -x pgmax: Invalid value for specified option
 */
