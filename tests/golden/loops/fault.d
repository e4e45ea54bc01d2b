/* NAME a fault ends the loop and its clause, not the next one
 * OPTIONS -q
 */
BEGIN
{
	for (i = 5; i > 0; i -= 2) {
		if (i == 3)
			x = *(int *)0;
		printf("%d\n", i);
	}
	printf("behind\n");
}
BEGIN
{
	printf("next\n");
	exit(0);
}
/* EXPECT
 * 5
 * next
 *
 */
/* STDERR
 * invalid address (0x0)
 */
