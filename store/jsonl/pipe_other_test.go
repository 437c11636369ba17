//go:build !unix

package jsonl

import (
	"os"
	"testing"
)

// makePipe makes a folder where there are no pipes in folders.
func makePipe(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }
