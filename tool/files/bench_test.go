package files_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
)

const benchBytes = 50 << 20

// tree makes 50 MB of text in 5,000 files of 100 directories; "needle" is in
// ten of them.
func tree(b *testing.B) string {
	dir := b.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	var words []string
	for range 500 {
		words = append(words, fmt.Sprintf("word%c%d", 'a'+rng.IntN(26), rng.IntN(1000)))
	}
	for d := range 100 {
		sub := filepath.Join(dir, fmt.Sprintf("dir%02d", d))
		if err := os.Mkdir(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 50 {
			var text bytes.Buffer
			for text.Len() < benchBytes/5000 {
				for range 6 {
					text.WriteString(words[rng.IntN(len(words))])
					text.WriteByte(' ')
				}
				text.WriteByte('\n')
			}
			if f == 25 && d%10 == 0 {
				text.WriteString("the Needle is here\n")
			}
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%02d.txt", f)), text.Bytes(), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	return dir
}

// The floor is a bare look for the same bytes in the same files, with as many
// goroutines as there are processors.
func BenchmarkGrep(b *testing.B) {
	dir := tree(b)
	w, err := files.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	tools, err := w.Tools()
	if err != nil {
		b.Fatal(err)
	}
	reg, err := tool.NewRegistry(tool.Options{}, tools...)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(benchBytes)
		for b.Loop() {
			names := make(chan string, 64)
			var all sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				all.Go(func() {
					for name := range names {
						if text, err := os.ReadFile(name); err == nil {
							_ = bytes.Contains(text, []byte("Needle"))
						}
					}
				})
			}
			if err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() {
					names <- name
				}
				return err
			}); err != nil {
				b.Fatal(err)
			}
			close(names)
			all.Wait()
		}
	})
	for _, c := range []struct{ name, args string }{
		{"text", `{"pattern":"Needle"}`},
		{"text, any case", `{"pattern":"needle","ignore_case":true}`},
		{"expression with a text", `{"pattern":"\\bN\\w+dle is"}`},
		{"expression without a text", `{"pattern":"[Nn]e{2}dle"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(benchBytes)
			tl, call, bad := reg.Check("c", "grep", c.args)
			if bad != nil {
				b.Fatal(bad)
			}
			for b.Loop() {
				res, err := tl.Run(context.Background(), call)
				if err != nil || strings.Count(res.Content[0].Text, "Needle") != 10 {
					b.Fatalf("%v %v", res.Content, err)
				}
			}
		})
	}
}
