inline int second = 10;
