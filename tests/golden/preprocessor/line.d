/* NAME #line changes the line of errors
 * TAG D_IDENT_UNDEF
 */
#line 100
BEGIN { trace(nowhere); }
/* STDERR
 * line 100
 */
