/* NAME pragmas may be indented
 */
	#pragma D option quiet

BEGIN
{
	  #	pragma	D  option defaultargs
	printf("%d\n", $1);
	exit(0);
}
/* EXPECT
 * 0
 *
 */
