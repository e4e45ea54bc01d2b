/* NAME a chain of && and || may be as long as the program that wrote it likes
 * RUN awk 'BEGIN { printf "BEGIN /pid == -1"; for (i = 0; i < 3000; i++) printf " || pid == -%d && execname != \"p%d\"", i + 2, i; print " || 1/ { trace(\"held\"); exit(0); }"; printf "BEGIN /1"; for (i = 0; i < 3000; i++) printf " && pid != -%d", i + 1; print " && 0/ { trace(\"never\"); }" }' > chain.d; $DTRACE -q -s chain.d
 */
/* EXPECT
 * held
 */
