/* NAME END runs after exit()
 * OPTIONS -q
 */
BEGIN
{
	printf("begin ");
	exit(0);
}
END
{
	printf("end\n");
}
/* EXPECT
 * begin end
 *
 */
