/* NAME exit() in END changes the status
 * EXIT 5
 * OPTIONS -q
 */
BEGIN
{
	exit(3);
}
END
{
	printf("end\n");
	exit(5);
}
/* EXPECT
 * end
 *
 */
