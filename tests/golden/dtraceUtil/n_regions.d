/* NAME errors of a description say which part of it they are in
 * EXIT 1
 * RUN $DTRACE -x errtags -e -n 'BEGIN { trace(nosuch); }'; $DTRACE -e -n 'BEGIN /nosuch/ { }';
 * RUN $DTRACE -e -n 'BEGIN { trace(1 }'; $DTRACE -e -n 'nosuch:::x'
 */
/* STDERR
 * invalid probe specifier BEGIN { trace(nosuch); }: [D_IDENT_UNDEF] in action list: failed to
 * invalid probe specifier BEGIN /nosuch/ { }: in predicate: failed to resolve nosuch: Unknown
 * invalid probe specifier BEGIN { trace(1 }: syntax error near "}"
 * invalid probe specifier nosuch:::x: probe description nosuch:::x does not match any probes
 */
