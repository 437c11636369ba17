//go:build !unix

package files

// nonblock is nothing where no name in a directory can block.
const nonblock = 0
