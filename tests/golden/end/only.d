/* NAME END with nothing before it fires when tracing ends
 * OPTIONS -q
 */
END
{
	printf("end\n");
}
tick-10ms
{
	exit(0);
}
/* EXPECT
 * end
 *
 */
