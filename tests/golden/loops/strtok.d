/* NAME strtok() goes on in a loop
 * OPTIONS -q
 */
BEGIN
{
	this->word = strtok("one,two;three", ",;");
	while (this->word != NULL; 10) {
		printf("%s ", this->word);
		this->word = strtok(NULL, ",;");
	}
	exit(0);
}
/* EXPECT
 * one two three $
 */
