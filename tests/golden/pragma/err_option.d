/* NAME an option that does not exist is an error
 * TAG D_PRAGMA_OPTSET
 */
#pragma D option nowhere
BEGIN
{
	exit(0);
}
