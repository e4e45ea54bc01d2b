struct shared {
	int a;
	long b;
};
