/* NAME -x threads tells the thread in a speculation, and only of clauses that record
 * RUN $DTRACE -q -O jsonl -x threads -s $SCRIPT
 */
BEGIN
{
	self->buffer = speculation();
}

BEGIN
{
	speculate(self->buffer);
	trace(1);
}

BEGIN
{
	commit(self->buffer);
}

BEGIN
{
	@calls = count();
}

BEGIN
{
	exit(0);
}
/* EXPECT
 * {"timestamp":<*>,"cpu":0,"id":1,"provider":"dtrace","module":"","function":"","name":"BEGIN","pid":<*>,"tid":<*>,"execname":"ringside","output":[{"type":"int","value":1}]}
 * {"timestamp":<*>,"cpu":0,"id":1,"provider":"dtrace","module":"","function":"","name":"BEGIN","pid":<*>,"tid":<*>,"execname":"ringside","output":[{"exit":0}]}
 * {"timestamp":<*>,"cpu":0,"id":0,"provider":"dtrace","module":"INTERNAL","function":"INTERNAL","name":"AGGREGATIONS","output":[{"aggregation-data":[{"keys":[],"count":1}],"aggregation-name":"calls","aggregation-function":"count"}]}
 */
