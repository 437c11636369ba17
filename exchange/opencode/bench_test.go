package opencode_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/opencode"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// BenchmarkDatabase makes the log of a session of 16 MB in a database, results of
// 6 KB in it. The floor is the database's own: every part of it, checked to be
// JSON.
func BenchmarkDatabase(b *testing.B) {
	s := session("ses_parent0000000001")
	output := strings.Repeat("func main() { fmt.Println(\"a line of code\") }\n\t", 130)
	for n := 0; n < 2700; n++ {
		if n%10 == 0 {
			s.messages = append(s.messages, user(10000+2*n, says("go on")))
		}
		s.messages = append(s.messages, reply(10000+2*n+1, nil, object{"type": "step-start"}, says("looking"),
			tool("c", "read", object{"status": "completed", "input": object{"path": "a.go"}, "output": output, "title": "a.go", "time": object{"start": 1, "end": 2}})))
	}
	dir := b.TempDir()
	path := forms[2].write(b, dir, s, session("ses_other00000000001"))
	db, err := sql.Open("sqlite", filepath.Join(dir, "opencode.db"))
	tb(b, err)
	defer db.Close()
	ctx := context.Background()
	var floor, took time.Duration
	var size int64
	for b.Loop() {
		b.StopTimer()
		start := time.Now()
		rows, err := db.Query("SELECT data FROM part ORDER BY id")
		tb(b, err)
		size = 0
		for rows.Next() {
			var v sql.RawBytes
			tb(b, rows.Scan(&v))
			tb(b, jsonwire.Valid(v))
			size += int64(len(v))
		}
		tb(b, rows.Close())
		floor += time.Since(start)
		b.StartTimer()
		start = time.Now()
		for ses, err := range opencode.Sessions(ctx, path, nil) {
			tb(b, err)
			h, err := ses.Header(ctx, exchange.Options{})
			tb(b, err)
			for _, err := range ses.Records(ctx, h, exchange.Options{}) {
				tb(b, err)
			}
		}
		took += time.Since(start)
	}
	b.ReportMetric(float64(took)/float64(floor), "x-floor")
	b.ReportMetric(float64(size)*float64(b.N)/1e6/took.Seconds(), "MB/s")
}
