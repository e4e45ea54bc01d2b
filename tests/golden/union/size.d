/* NAME a union is as large as its largest member
 * OPTIONS -q
 */
union value {
	char c;
	long long l;
	int i[3];
};
BEGIN
{
	printf("%d %d\n", sizeof (union value), offsetof(union value, i));
	exit(0);
}
/* EXPECT
 * 16 0
 *
 */
