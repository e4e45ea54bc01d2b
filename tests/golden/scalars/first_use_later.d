/* NAME a variable that a later clause assigns must be declared before it is read
 * TAG D_IDENT_UNDEF
 */
BEGIN
{
	trace(x);
}
BEGIN
{
	x = 1;
}
