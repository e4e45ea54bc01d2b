/* NAME a function is no member
 * TAG D_DECL_VOIDOBJ
 */
struct s {
	int f(void);
};
BEGIN
{
	exit(0);
}
