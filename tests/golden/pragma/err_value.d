/* NAME an option's bad value is an error
 * TAG D_PRAGMA_OPTSET
 */
#pragma D option bufsize=many
BEGIN
{
	exit(0);
}
