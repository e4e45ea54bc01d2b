/* NAME $$1 is the argument as a string
 * ARGS hello 12
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
