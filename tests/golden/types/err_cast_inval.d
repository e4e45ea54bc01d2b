/* NAME an integer cannot become a struct
 * TAG D_CAST_INVAL
 */
struct pair {
	int a;
	int b;
};
BEGIN
{
	trace((struct pair)7);
}
