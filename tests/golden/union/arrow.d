/* NAME -> needs a pointer to a union
 * TAG D_OP_PTR
 */
union u { int a; };
union u x;
BEGIN { trace(x->a); }
