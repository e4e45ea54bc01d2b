/* NAME offsetof needs a type that is known
 * TAG D_OFFSETOF_TYPE
 */
struct later;
BEGIN { trace(offsetof(struct later, a)); }
