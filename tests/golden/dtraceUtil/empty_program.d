/* NAME a program without probes has nothing to enable
 * RUN $DTRACE -x empty -s $SCRIPT; echo $?; $DTRACE -ex empty -s $SCRIPT; echo $?
 */
int x;
/* EXPECT
 * 1
 * 0
 */
/* STDERR
 * script 'empty_program.d' matched 0 probes
 * no probes matched
 */
