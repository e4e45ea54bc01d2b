/* NAME a number or word that the text's end cuts off is none
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d\n", json("{\"n\": 12", "n") == NULL, json("[true", "0") == NULL,
	    json("[null", "[0]") == NULL);
	printf("%s %s %s\n", json("{\"n\": 12 ", "n"), json("[true,", "0"), json("{\"n\": 12}", "n"));
	exit(0);
}
/* EXPECT
 * 1 1 1
 * 12 true 12
 *
 */
