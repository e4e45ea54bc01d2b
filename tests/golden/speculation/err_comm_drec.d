/* NAME commit() may not follow what records data
 * TAG D_COMM_DREC
 */
BEGIN
{
	this->s = speculation();
	printf("recorded");
	commit(this->s);
}
