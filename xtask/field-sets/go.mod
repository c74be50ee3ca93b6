module klient/field-sets

go 1.26

require sigs.k8s.io/structured-merge-diff/v6 v6.3.2
