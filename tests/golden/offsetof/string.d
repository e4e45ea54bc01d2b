/* NAME a string has no members
 * TAG D_OFFSETOF_TYPE
 */
BEGIN { trace(offsetof(string, a)); }
