/* NAME freopen() does not take a folder
 * TAG D_FREOPEN_INVALID
 * OPTIONS -w
 */
BEGIN
{
	freopen(".");
}
