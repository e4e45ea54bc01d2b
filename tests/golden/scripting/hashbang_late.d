
	#!/usr/sbin/dtrace -s
/* NAME blank lines may come before the line of #!
 * OPTIONS -q
 */
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
