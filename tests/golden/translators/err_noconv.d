/* NAME a member that the translator does not set has no value
 * TAG D_XLATE_NOCONV
 */
struct in {
	int i;
};
struct out {
	int more;
	int less;
};
translator struct out < struct in *P > {
	more = P->i;
};
BEGIN
{
	this->p = (struct in *)alloca(sizeof (struct in));
	trace(xlate <struct out> (this->p).less);
}
