//go:build !linux

package sqlite

// remote names the file system of a folder when several machines may have it at
// once, else "". Here it is not asked.
func remote(string) string { return "" }
