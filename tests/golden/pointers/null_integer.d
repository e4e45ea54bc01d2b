/* NAME NULL is the int 0, which compares with integers, pointers and strings
 * OPTIONS -q
 */
int declared;
BEGIN
/arg0 == NULL/
{
	p = (int *)16;
	s = "a";
	printf("%d %d %d\n", sizeof(NULL), NULL, NULL + 5);
	printf("%d %d\n", p == NULL, NULL != p);
	printf("%d %d\n", s == NULL, probename != NULL);
	self->x = NULL;
	self->x = 5;
	a["x"] = 3;
	a["x"] = NULL;
	p = NULL;
	declared = NULL;
	keyed[NULL] = 7;
	printf("%d %d %d %d %d\n", self->x, sizeof(self->x), a["x"], declared, keyed[0]);
	printf("%d\n", p == 0);
	exit(0);
}
/* EXPECT
 * 4 0 5
 * 0 1
 * 0 1
 * 5 4 0 0 7
 * 1
 *
 */
