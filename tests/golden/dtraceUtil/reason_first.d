/* NAME without errtags an error says first what is wrong, then where, and never the whole of a long -n
 * EXIT 1
 * RUN printf '#!/usr/sbin/dtrace -s\nBEGIN\n{\n\ttrace(exename);\n}\n' >a.d
 * RUN $DTRACE -e -s a.d; $DTRACE -e -n 'BEGIN { @ = coutn(); @[1] = count(); @[2] = count(); exit(0); }';
 * RUN $DTRACE -e -n 'BEGIN /nosuch/ { }'; $DTRACE -e -n 'BEGIN { trace(1 }'
 */
/* STDERR
 * : failed to resolve exename: Unknown variable name; did you mean execname? (a.d:4)
 * 	trace(exename);
 * 	      ^ column 8
 * : undefined function name: coutn; did you mean count? (in action list of 'BEGIN')
 * : failed to resolve nosuch: Unknown variable name (in predicate of 'BEGIN')
 * : syntax error near "}" (in 'BEGIN')
 */
