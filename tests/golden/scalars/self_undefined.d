/* NAME a thread variable that nobody sets is an error
 * TAG D_VAR_UNDEF
 */
BEGIN { trace(self->nobody); }
