/* NAME what a translator makes is defined
 * TAG D_XLATE_SOU
 */
translator struct nowhere < int *p > {
	x = 1;
};
BEGIN
{
	exit(0);
}
