/* NAME there is no arithmetic with unions
 * TAG D_OP_INCOMPAT
 */
union u { int a; };
union u x;
BEGIN { trace(x + 1); }
