/* NAME #pragma D option version hides what came later
 * TAG D_IDENT_UNDEF
 */
#pragma D option version=1.0
BEGIN { trace(errno_not_there); }
