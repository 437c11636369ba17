package cli

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// isTerminal reports whether a stream is a terminal of this system.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && fdIsTerminal(f.Fd())
}

// style colours text for a terminal.
type style bool

// style says whether stdout gets colour.
func (a *app) style() style {
	return style(a.env.Getenv("NO_COLOR") == "" && a.env.Getenv("TERM") != "dumb" && a.env.Terminal(a.env.Stdout))
}

func (s style) sgr(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.sgr("1", text) }
func (s style) dim(text string) string    { return s.sgr("2", text) }
func (s style) red(text string) string    { return s.sgr("31", text) }
func (s style) green(text string) string  { return s.sgr("32", text) }
func (s style) yellow(text string) string { return s.sgr("33", text) }
func (s style) cyan(text string) string   { return s.sgr("36", text) }

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
