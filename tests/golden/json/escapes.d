/* NAME a string's text is what stands between its quotes
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|%s|\n", json("{\"a\":\"x\\ny\"}", "a"), json("{\"a\":\"\\u0041\\\"\"}", "a"));
	printf("%d %d\n", json("{\"a\":\"\\u00ZZ\", \"b\":1}", "a") == NULL,
	    json("{\"a\":\"\\u00ZZ\", \"b\":1}", "b") == NULL);
	exit(0);
}
/* EXPECT
 * x\ny|\u0041\"|
 * 1 1
 *
 */
