//go:build unix

package mcp

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestClosingEndsAProgramAndItsChildren(t *testing.T) {
	b := up(t, program("stubborn", "stubborn"))
	child, _ := strconv.Atoi(b.said.await(`child (\d+)`))
	if err := b.set.Close(); err != nil {
		t.Error(err)
	}
	// A killed child may still be a zombie until its new parent has waited.
	for alive := true; alive; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		alive = syscall.Kill(child, 0) == nil && (err != nil || !strings.Contains(string(stat), ") Z "))
	}
}
