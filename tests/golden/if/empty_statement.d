/* NAME an empty statement is a branch
 * OPTIONS -q
 */
BEGIN
{
	;
	if (0)
		;
	else
		printf("else");
	if (1)
		;
	exit(0);
}
/* EXPECT
 * else
 */
