/* NAME -x threads tells the thread of each record; a clause that records nothing has one, too
 * RUN $DTRACE -q -O jsonl -x threads -s $SCRIPT
 */
BEGIN
{
}

BEGIN
{
	trace(1);
	exit(0);
}
/* EXPECT
 * {"timestamp":<*>,"cpu":0,"id":1,"provider":"dtrace","module":"","function":"","name":"BEGIN","pid":<*>,"tid":<*>,"execname":"ringside","output":[]}
 * {"timestamp":<*>,"cpu":0,"id":1,"provider":"dtrace","module":"","function":"","name":"BEGIN","pid":<*>,"tid":<*>,"execname":"ringside","output":[{"type":"int","value":1},{"exit":0}]}
 */
