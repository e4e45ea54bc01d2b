/* NAME a predicate may name an array that a later clause assigns in a loop or a condition
 * OPTIONS -q
 */
BEGIN
/!seen["loop"] && !seen["if"]/
{
	first = "none";
}

BEGIN
{
	for (i = 0;; i++; 5) {
		if (i == 3)
			break;
		seen["loop"] += i;
	}
	if (i == 3)
		seen["if"] = 5;
	printf("%s %d %d\n", first, seen["loop"], seen["if"]);
	exit(0);
}
/* EXPECT
 * none 3 5
 *
 */
