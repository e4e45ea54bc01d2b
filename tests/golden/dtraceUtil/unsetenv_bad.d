/* NAME unsetenv takes a name only
 * OPTIONS -x unsetenv=a=b
 * EXIT 1
 */
BEGIN { exit(0); }
/* STDERR
 * Invalid value for specified option
 */
