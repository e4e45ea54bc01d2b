/* NAME the environment of -c is the command line's only
 * TAG D_PRAGMA_OPTSET
 */
#pragma D option setenv=A=1
BEGIN { exit(0); }
