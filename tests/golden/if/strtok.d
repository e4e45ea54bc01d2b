/* NAME strtok() goes on in the ifs of its clause
 * OPTIONS -q
 */
BEGIN
{
	this->a = strtok("a:b:c", ":");
	if (this->a == "a")
		this->b = strtok(NULL, ":");
	this->c = strtok(NULL, ":");
	printf("%s %s %s\n", this->a, this->b, this->c);
	exit(0);
}
/* EXPECT
 * a b c
 *
 */
