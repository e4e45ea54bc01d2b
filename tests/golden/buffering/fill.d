/* NAME a full fill buffer ends tracing
 * OPTIONS -q -x bufpolicy=fill -b 1k
 * TIMEOUT 60
 * SKIP does not compile: inlines nest too deeply
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
