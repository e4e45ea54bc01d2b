/* NAME strtok() goes on at the delimiter that ended the last token
 * OPTIONS -q
 */
BEGIN
{
	this->a = strtok("a,b;c,d", ",");
	this->b = strtok(NULL, ";");
	this->c = strtok(NULL, ",");
}
BEGIN
{
	this->d = strtok(NULL, ",");
	printf("[%s][%s][%s][%s]\n", this->a, this->b, this->c, this->d);
	exit(0);
}
/* EXPECT
 * [a][,b][;c][d]
 *
 */
