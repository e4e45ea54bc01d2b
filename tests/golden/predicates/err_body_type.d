/* NAME a predicate's comparison must fit the type that the body gives
 * TAG D_OP_INCOMPAT
 */
BEGIN
/s == 5/
{
	s = "hello";
	exit(0);
}
