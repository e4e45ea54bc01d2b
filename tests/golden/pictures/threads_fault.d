/* NAME -x threads leaves the numbers of actions in messages about faults as they are
 * RUN $DTRACE -q -O jsonl -x threads -s $SCRIPT 2>&1 >/dev/null | cut -d' ' -f1-20
 */
BEGIN
{
	trace(*(int *)0);
}

BEGIN
{
	exit(0);
}
/* EXPECT
 * ringside: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1 at DIF offset 4:
 */
