/* NAME a clause may commit only once
 * TAG D_COMM_COMM
 * SKIP commit() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	commit(this->s);
}
