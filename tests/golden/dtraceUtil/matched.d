/* NAME the number of probes that matched is said
 * RUN $DTRACE -n 'BEGIN { exit(0); }' >/dev/null
 */

/* STDERR
 * description 'BEGIN ' matched 1 probe
 */
