/* NAME after an error tracing goes on, and the status is what exit() says
 * EXIT 5
 * OPTIONS -q
 */
BEGIN
{
	x = *(char *)0;
}
END
{
	printf("end\n");
}
BEGIN
{
	exit(5);
}
/* EXPECT
 * end
 *
 */
