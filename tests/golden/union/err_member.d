/* NAME a member of a union exists
 * TAG D_TYPE_MEMBER
 */
union value {
	int i;
};
union value *v;
BEGIN
{
	trace(v->j);
}
