/* NAME exit() in END does not change the status
 * EXIT 3
 * OPTIONS -q
 */
BEGIN
{
	exit(3);
}
END
{
	printf("end\n");
}
/* EXPECT
 * end
 *
 */
