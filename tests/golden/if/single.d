/* NAME one statement needs no braces
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	x = 3;
	if (x == 3)
		printf("three\n");
	else
		printf("other\n");
	exit(0);
}
/* EXPECT
 * three
 *
 */
