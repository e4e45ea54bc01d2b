/* NAME a fault in the condition ends the clause
 * OPTIONS -q
 */
BEGIN
{
	printf("before\n");
	if (*(int *)0) {
		printf("then\n");
	} else {
		printf("else\n");
	}
	printf("behind\n");
}
BEGIN
{
	exit(0);
}
/* EXPECT
 * before
 *
 */
