/* NAME json() finds a member by its path
 * OPTIONS -q
 */
BEGIN
{
	this->doc = "{\"a\": {\"b\": \"text\", \"n\": 12}, \"list\": [5, 6, {\"x\": true}]}";
	printf("%s %s %s %s\n", json(this->doc, "a.b"), json(this->doc, "a.n"),
	    json(this->doc, "list[1]"), json(this->doc, "list[2].x"));
	exit(0);
}
/* EXPECT
 * text 12 6 true
 *
 */
