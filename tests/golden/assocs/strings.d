/* NAME elements may be strings, NULL where none was assigned
 * OPTIONS -q
 */
BEGIN
{
	name[1] = "one";
	name[2] = "two";
	printf("%s %s %d\n", name[1], name[2], name[3] == NULL);
	exit(0);
}
/* EXPECT
 * one two 1
 *
 */
