/* NAME pragmas of others are ignored
 * OPTIONS -q
 */
#pragma ident "version 1"
#pragma once
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
