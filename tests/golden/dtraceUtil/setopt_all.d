/* NAME what may be set while tracing, and what not
 * OPTIONS -q
 */
BEGIN
{
	setopt("quiet"); setopt("flowindent", "off"); setopt("rawbytes", "off");
	setopt("aggsortkey"); setopt("aggsortrev", "0"); setopt("aggsortpos", "0");
	setopt("aggsortkeypos", "0"); setopt("aggrate", "1s"); setopt("switchrate", "10hz");
	setopt("statusrate", "1s"); setopt("stackindent", "4"); setopt("agghist", "off");
	setopt("aggpack", "off"); setopt("aggzoom", "off"); setopt("droptags");
	setopt("libdir", "/nowhere"); setopt("define", "X");
	setopt("aggsize", "1m"); setopt("bufpolicy", "ring"); setopt("bufresize", "manual");
	setopt("bufsize", "1m"); setopt("cleanrate", "10hz"); setopt("cpu", "0");
	setopt("destructive"); setopt("dynvarsize", "1m"); setopt("nspec", "2");
	setopt("specsize", "1m"); setopt("stackframes", "3"); setopt("strsize", "64");
	setopt("ustackframes", "3"); setopt("jstackframes", "3"); setopt("jstackstrsize", "3");
	setopt("errtags"); setopt("zdefs"); setopt("cpp");
	setopt("quiet", "maybe"); setopt("stackindent", "x"); setopt("aggrate", "never");
	exit(0);
}
/* STDERR
 * couldn't set option "aggsize" to "1m": Operation illegal when tracing is active
 * couldn't set option "bufpolicy" to "ring": Operation illegal when tracing is active
 * couldn't set option "bufresize" to "manual": Operation illegal when tracing is active
 * couldn't set option "bufsize" to "1m": Operation illegal when tracing is active
 * couldn't set option "cleanrate" to "10hz": Operation illegal when tracing is active
 * couldn't set option "cpu" to "0": Operation illegal when tracing is active
 * couldn't set option "destructive" to "1": Operation illegal when tracing is active
 * couldn't set option "dynvarsize" to "1m": Operation illegal when tracing is active
 * couldn't set option "nspec" to "2": Operation illegal when tracing is active
 * couldn't set option "specsize" to "1m": Operation illegal when tracing is active
 * couldn't set option "stackframes" to "3": Operation illegal when tracing is active
 * couldn't set option "strsize" to "64": Operation illegal when tracing is active
 * couldn't set option "ustackframes" to "3": Operation illegal when tracing is active
 * couldn't set option "jstackframes" to "3": Operation illegal when tracing is active
 * couldn't set option "jstackstrsize" to "3": Operation illegal when tracing is active
 * couldn't set option "errtags" to "1": Invalid value for specified option
 * couldn't set option "zdefs" to "1": Invalid value for specified option
 * couldn't set option "cpp" to "1": Invalid value for specified option
 * couldn't set option "quiet" to "maybe": Invalid value for specified option
 * couldn't set option "stackindent" to "x": Invalid value for specified option
 * couldn't set option "aggrate" to "never": Invalid value for specified option
 */
/* EXPECT
 *
 */
