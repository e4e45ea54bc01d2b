/* NAME an option for what runs before the program
 * TAG D_PRAGMA_OPTSET
 */
#pragma D option incdir=/tmp

BEGIN
{
	exit(0);
}
