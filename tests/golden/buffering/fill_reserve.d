/* NAME a fill buffer of 128 bytes has room for 7 records of 16 bytes and that of END
 * OPTIONS -q -x bufpolicy=fill -b 128
 */
tick-1ms
{
	n++;
	trace(n > 0);
}
END
{
	printf("\n%d\n", n > 0);
}
/* EXPECT
 * 1111111
 * 1
 *
 */
