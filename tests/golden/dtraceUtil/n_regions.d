/* NAME errors of a description say which part of it they are in
 * EXIT 1
 * RUN $DTRACE -x errtags -e -n 'BEGIN { trace(nosuch); }';
 * RUN $DTRACE -x errtags -e -n 'BEGIN /nosuch/ { }';
 * RUN $DTRACE -x errtags -e -n 'BEGIN { trace(1 }'; $DTRACE -x errtags -e -n 'nosuch:::x'
 */
/* STDERR
 * invalid probe specifier BEGIN { trace(nosuch); }: [D_IDENT_UNDEF] in action list: failed to
 * invalid probe specifier BEGIN /nosuch/ { }: [D_IDENT_UNDEF] in predicate: failed to resolve nosuch: Unknown
 * invalid probe specifier BEGIN { trace(1 }: [D_SYNTAX] syntax error near "}"
 * invalid probe specifier nosuch:::x: [D_PDESC_ZERO] probe description nosuch:::x does not match any probes
 */
