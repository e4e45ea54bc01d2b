#!/usr/sbin/dtrace -s
/* NAME a first line of #! is skipped
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
