/* NAME structs in structs, with the padding of C
 * OPTIONS -q
 */
struct inner {
	char c;
	long long l;
};
struct outer {
	short s;
	struct inner i[2];
};
BEGIN
{
	printf("%d %d %d\n", sizeof (struct inner), sizeof (struct outer), offsetof(struct outer, i));
	exit(0);
}
/* EXPECT
 * 16 40 8
 *
 */
