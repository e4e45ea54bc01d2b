/* NAME a condition may compare strings
 * OPTIONS -q
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
