package dshsqlite_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/store/dshsqlite/dshsqlitetest"
)

// BenchmarkRead reads a session of 100,000 events. The floor is the database's
// own: every column of the same rows, and nothing made of them.
func BenchmarkRead(b *testing.B) {
	s := generated(1, 100_000)
	s.Batch = 1000
	path := write(b, 17, s)
	db, err := dshsqlitetest.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	st := open(b, path)
	var floor, took time.Duration
	for b.Loop() {
		b.StopTimer()
		start := time.Now()
		rows, err := db.Query("SELECT seq, type, time, data, source_event_seqs, surface_op, ignorable FROM events WHERE session_id = ? ORDER BY seq", s.Header.ID)
		if err != nil {
			b.Fatal(err)
		}
		var v [7]sql.RawBytes
		for rows.Next() {
			if err := rows.Scan(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6]); err != nil {
				b.Fatal(err)
			}
		}
		rows.Close()
		floor += time.Since(start)
		b.StartTimer()
		start = time.Now()
		sd, err := st.Read(bg, s.Header.ID)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for r, err := range sd.Records() {
			if err != nil {
				b.Fatal(err)
			}
			n += r.Count()
		}
		if sd.Close(); n != len(s.Events) {
			b.Fatal(n)
		}
		took += time.Since(start)
	}
	b.ReportMetric(float64(took)/float64(floor), "x-floor")
	b.ReportMetric(float64(len(s.Events))*float64(b.N)/took.Seconds(), "events/s")
}
