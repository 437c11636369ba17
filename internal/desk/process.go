package desk

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// randomID is a new id: 16 hexadecimal digits.
func randomID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// startedAs is how a person starts this program again.
func startedAs() string {
	exe, err := os.Executable()
	if err != nil {
		return "outcrop"
	}
	// go run builds into a folder of this name and removes it afterwards.
	if strings.Contains(filepath.ToSlash(exe), "/go-build") {
		return "go run ./cmd/outcrop"
	}
	return "outcrop"
}
