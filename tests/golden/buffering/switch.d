/* NAME bufpolicy=switch is what there is anyway
 * OPTIONS -q -x bufpolicy=switch
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
