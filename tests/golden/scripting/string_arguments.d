/* NAME $$1 is the argument as a string
 * ARGS hello 12
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s\n", $$1, $$2);
	exit(0);
}
/* EXPECT
 * hello 12
 *
 */
