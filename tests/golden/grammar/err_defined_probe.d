/* NAME only a library defines probes
 * RUN mkdir L; $DTRACE -x errtags -n 'provider p { probe a() = fbt::f:entry; }; BEGIN { }'; echo $?; printf 'provider p {\n\tprobe a(int x) = fbt::f:entry / x > 1 / { x = arg0; }\n\t    -> fbt::f:return { x = ; };\n};\n' > L/a.d; $DTRACE -x errtags -L L -e -n 'BEGIN { }'; echo $?
 */
/* EXPECT
 * 1
 * 1
 */
/* STDERR
 * [D_PROV_PLACE] in action list: only libraries define probes: move provider p to a file of a folder that -L names
 * [D_SYNTAX] "L/a.d", line 3: syntax error near ";"
 */
