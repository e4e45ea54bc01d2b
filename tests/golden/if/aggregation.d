/* NAME aggregations in both branches
 * OPTIONS -q
 */
BEGIN
{
	x = 1;
	if (x) {
		@["then"] = count();
	} else {
		@["else"] = count();
	}
	exit(0);
}
/* EXPECT
 *
 *   then                                                              1
 */
