/* NAME xlate to a pointer is used with ->
 * OPTIONS -q
 */
struct in {
	int i;
};
struct out {
	int more;
};
translator struct out < struct in *P > {
	more = P->i + 1;
};
BEGIN
{
	this->p = (struct in *)alloca(sizeof (struct in));
	this->p->i = 4;
	printf("%d\n", xlate <struct out *> (this->p)->more);
	exit(0);
}
/* EXPECT
 * 5
 *
 */
