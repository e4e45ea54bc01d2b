/* NAME of a member that is given twice the first counts
 * OPTIONS -q
 */
struct s {
	int x;
};
translator struct s < int *p > {
	x = 1;
	x = 2;
};
BEGIN
{
	printf("%d\n", xlate <struct s *> ((int *)0)->x);
	exit(0);
}
/* EXPECT
 * 1
 *
 */
