/* NAME a full fill buffer ends tracing
 * OPTIONS -q -x bufpolicy=fill -b 1k
 * TIMEOUT 60
 */
tick-1ms
{
	printf("%s", "");
}
END
{
	printf("end\n");
}
/* EXPECT
 * end
 *
 */
