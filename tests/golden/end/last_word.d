/* NAME END prints after everything else, aggregations after END
 * OPTIONS -q
 */
BEGIN
{
	@["k"] = count();
	exit(0);
}
END
{
	printf("end\n");
}
/* EXPECT
 * end
 *
 *   k                                                                 1
 */
