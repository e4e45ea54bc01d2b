/* NAME -e without a program reads the libraries of -L
 * RUN mkdir L C; printf '#pragma D depends_on library nowhere.d\n' > L/a.d; $DTRACE -x errtags -L L -e; echo $?; printf '#pragma D depends_on library b.d\n' > C/a.d; printf '#pragma D depends_on library a.d\n' > C/b.d; $DTRACE -x errtags -L C -e; echo $?; printf 'inline int seven = 7;\n' > L/a.d; $DTRACE -L L -e; echo $?; $DTRACE -e; echo $?
 */
/* EXPECT
 * 1
 * 1
 * 0
 * 0
 */
/* STDERR
 * [D_PRAGMA_DEPEND] "L/a.d", line 1: invalid library dependency: there is no library nowhere.d
 * [D_PRAGMA_DEPEND] "C/
 * libraries depend on each other
 */
