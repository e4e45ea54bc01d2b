/* NAME the path of json() takes an index after a dot
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s\n", json("[4,5]", "1"), json("[[1,2],[3,4]]", "1.0"));
	this->doc = "{\"list\":[{\"x\":7},8],\"0\":\"zero\",\"n\":{\"1\":2}}";
	printf("%s %s\n", json(this->doc, "list.0.x"), json(this->doc, "list.1"));
	printf("%s %s\n", json(this->doc, "0"), json(this->doc, "n.1"));
	printf("%d %d %d\n", json(this->doc, "list.2") == NULL, json(this->doc, "list.x") == NULL,
	    json(this->doc, "list.-1") == NULL);
	exit(0);
}
/* EXPECT
 * 5 3
 * 7 8
 * zero 2
 * 1 1 1
 *
 */
