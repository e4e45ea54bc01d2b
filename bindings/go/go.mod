module ringside

go 1.19
