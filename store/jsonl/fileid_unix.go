//go:build unix

package jsonl

import (
	"io/fs"
	"syscall"
)

// fileID tells a file from another one that took its name, 0 when the file
// system does not say.
func fileID(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
