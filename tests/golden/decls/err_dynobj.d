/* NAME a member cannot be an associative array
 * TAG D_DECL_DYNOBJ
 */
struct s {
	int a[int];
};
