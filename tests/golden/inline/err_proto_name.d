/* NAME the keys of an inline have names
 * TAG D_DECL_PROTO_NAME
 */
inline int i[int] = 1;
