/* NAME setopt() of what cannot be set says so, and tracing goes on
 * OPTIONS -q
 */
BEGIN
{
	setopt("wombats");
	setopt("bufsize", "1m");
	setopt("aggrate", "often");
	exit(0);
}
/* EXPECT
 *
 */
/* STDERR
 * couldn't set option "wombats" to "1": Invalid option name
 * couldn't set option "bufsize" to "1m": Operation illegal when tracing is active
 * couldn't set option "aggrate" to "often": Invalid value for specified option
 */
