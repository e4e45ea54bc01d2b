/* NAME no pointer can be taken from an integer
 * TAG D_OP_VFPTR
 */
int x;
char *p;
BEGIN
{
	x -= p;
}
