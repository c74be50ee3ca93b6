module klient.invalid/xtask/test-tables

go 1.26.0
