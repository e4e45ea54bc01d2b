/* NAME a predicate may not name what only a later clause defines
 * TAG D_IDENT_UNDEF
 */
BEGIN
/!begun/
{
	exit(0);
}

END
{
	begun = 1;
}
