package jsonwire_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// BenchmarkText passes over the text of programs as JSON strings of 6 KB, as
// results of tools are; they have an escape every twenty bytes or so. The floor is
// a copy of the same bytes.
func BenchmarkText(b *testing.B) {
	var all strings.Builder
	files, err := filepath.Glob(filepath.Join("..", "..", "*.go"))
	if err != nil || len(files) == 0 {
		b.Fatal("no source: ", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		all.Write(text)
	}
	var texts []string
	var quoted [][]byte
	size := int64(0)
	for rest := all.String(); len(rest) > 6000; rest = rest[6000:] {
		text := strings.ToValidUTF8(rest[:6000], "")
		texts = append(texts, text)
		quoted = append(quoted, jsonwire.AppendString(nil, text))
		size += int64(len(quoted[len(quoted)-1]))
	}
	room := make([]byte, 0, 20000)
	for _, pass := range []struct {
		name string
		do   func(text string, q []byte)
	}{
		{"copy", func(_ string, q []byte) { room = append(room[:0], q...) }},
		{"String", func(_ string, q []byte) { jsonwire.String(q, 0) }},
		{"SkipString", func(_ string, q []byte) { jsonwire.SkipString(q, 0) }},
		{"Strict", func(_ string, q []byte) { jsonwire.Strict(q) }},
		{"Key", func(_ string, q []byte) { jsonwire.Key(q[1 : len(q)-1]) }},
		{"AppendString", func(text string, _ []byte) { room = jsonwire.AppendString(room[:0], text) }},
	} {
		b.Run(pass.name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				for i := range texts {
					pass.do(texts[i], quoted[i])
				}
			}
		})
	}
}
