/* NAME a built-in variable has no address
 * TAG D_ADDROF_VAR
 */
BEGIN { trace(&pid); }
