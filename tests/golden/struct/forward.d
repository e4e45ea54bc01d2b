/* NAME a pointer to a struct that is not complete yet is complete
 * OPTIONS -q
 */
struct node {
	struct node *next;
	struct later *other;
	int value;
};
BEGIN
{
	printf("%d\n", sizeof (struct node));
	exit(0);
}
/* EXPECT
 * 24
 *
 */
