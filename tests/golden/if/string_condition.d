/* NAME a condition may compare strings
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	if (probename == "BEGIN" && probeprov != "x") {
		printf("begin\n");
	}
	exit(0);
}
/* EXPECT
 * begin
 *
 */
