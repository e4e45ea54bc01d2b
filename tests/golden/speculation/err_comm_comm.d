/* NAME a clause may commit only once
 * TAG D_COMM_COMM
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	commit(this->s);
}
