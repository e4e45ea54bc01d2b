/* NAME the address of tracemem() is a number or pointer
 * TAG D_TRACEMEM_ADDR
 */
struct pair {
	int a;
	int b;
};
struct pair *both;
BEGIN
{
	tracemem(*both, 8);
}
