package jsonl

// NewOn opens a root on a file system of a test.
var NewOn = newOn
