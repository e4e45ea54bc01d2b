/* NAME one statement needs no braces
 * OPTIONS -q
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
