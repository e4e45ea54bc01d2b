/* NAME strtok() takes a string apart
 * OPTIONS -q
 */
BEGIN
{
	this->word = strtok("one,two;three", ",;");
	printf("%s ", this->word);
	this->word = strtok(NULL, ",;");
	printf("%s ", this->word);
	this->word = strtok(NULL, ",;");
	printf("%s ", this->word);
	this->word = strtok(NULL, ",;");
	printf("%d\n", this->word == NULL);
	exit(0);
}
/* EXPECT
 * one two three 1
 *
 */
