/* NAME the condition is evaluated once, before the statements
 * OPTIONS -q
 */
BEGIN
{
	x = 1;
	if (x) {
		x = 0;
		printf("then\n");
	} else {
		printf("else\n");
	}
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * then
 * 0
 *
 */
