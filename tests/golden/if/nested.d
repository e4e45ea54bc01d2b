/* NAME ifs may be nested
 * OPTIONS -q
 */
BEGIN
{
	x = 1;
	y = 2;
	if (x) {
		if (y == 1) {
			printf("1 1\n");
		} else {
			if (y == 2) {
				printf("1 2\n");
			}
		}
		printf("in x\n");
	}
	exit(0);
}
/* EXPECT
 * 1 2
 * in x
 *
 */
