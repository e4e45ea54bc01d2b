/* NAME a module that is not there has no types
 * TAG D_UNKNOWN
 */
BEGIN
{
	trace(sizeof (struct rds`rds_message));
}
