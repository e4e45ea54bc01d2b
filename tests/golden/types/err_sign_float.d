/* NAME only integers have signed and unsigned
 * TAG D_DECL_SIGNINT
 */
unsigned float x;
BEGIN
{
	exit(0);
}
