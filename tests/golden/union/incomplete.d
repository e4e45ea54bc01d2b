/* NAME a union that is not known has no size
 * TAG D_SIZEOF_TYPE
 */
union u;
BEGIN { trace(sizeof(union u)); }
