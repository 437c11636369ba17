//go:build !linux

package faultfs

// renameNew renames a file to a name that must be free, for file systems
// without hard links.
func renameNew(from, to string) error { return renameChecked(from, to) }
