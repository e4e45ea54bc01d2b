/* NAME a typedef keeps its name
 * OPTIONS -q
 */
typedef int id_type;

BEGIN
{
	print((id_type)5);
	exit(0);
}
/* EXPECT
 * id_type 0x5
 *
 */
