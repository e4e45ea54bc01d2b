/* NAME all four fields, and empty ones
 * OPTIONS -q
 */
dtrace:::BEGIN, :::END
{
	printf("%s ", probename);
	exit(0);
}
END
{
	printf("\n");
}
/* EXPECT
 * BEGIN END $
 *
 */
