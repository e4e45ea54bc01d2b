/* NAME an integer cannot become a struct
 * TAG D_CAST_INVAL
 * SKIP the command says D_UNKNOWN instead
 */
struct pair {
	int a;
	int b;
};
BEGIN
{
	trace((struct pair)7);
}
