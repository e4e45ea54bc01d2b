/* NAME break leaves a loop, continue goes on with its next round
 * OPTIONS -q
 */
BEGIN
{
	for (this->i = 0; this->i < 10; this->i++) {
		if (this->i == 2)
			continue;
		if (this->i == 5)
			break;
		printf("%d\n", this->i);
	}
	exit(0);
}
/* EXPECT
 * 0
 * 1
 * 3
 * 4
 *
 */
