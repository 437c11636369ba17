//go:build unix

package mcp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
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
	gone(child)
}

func TestAProgramDiesWithAClientThatIsKilled(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	client := exec.Command(os.Args[0])
	client.Env, client.Stderr = append(os.Environ(), asClient+"=1"), w
	err = client.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	// Once it is up the server is watched.
	lines, child, up := bufio.NewScanner(r), 0, false
	for !(up && child > 0) && lines.Scan() {
		up = up || lines.Text() == "up"
		if _, number, ok := strings.Cut(lines.Text(), "child "); ok {
			child, _ = strconv.Atoi(number)
		}
	}
	if err := client.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = client.Wait() // it was killed
	if child == 0 || !up {
		t.Fatal("the server did not start")
	}
	gone(child)
}

// gone returns when a process is.
func gone(child int) {
	// A killed child may still be a zombie until its new parent has waited.
	for alive := true; alive; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		alive = syscall.Kill(child, 0) == nil && (err != nil || !strings.Contains(string(stat), ") Z "))
	}
}
