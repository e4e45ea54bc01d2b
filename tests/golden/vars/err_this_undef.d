/* NAME a clause variable that nobody assigned is an error
 * TAG D_VAR_UNDEF
 */
BEGIN
{
	trace(this->nowhere);
}
