//go:build !unix

package workspace

// nonBlocking is nothing where opening a file never waits.
const nonBlocking = 0
