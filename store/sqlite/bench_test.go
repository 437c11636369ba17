package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// BenchmarkRead reads one log of 188,000 events (-short: 20,000). raw is the
// records of the store, load also restores a session from them; each as the
// share of what the bare driver takes to select the same columns, measured in
// turn. The floors are 0.8 and 0.5.
func BenchmarkRead(b *testing.B) {
	n := 188_000
	if testing.Short() {
		n = 20_000
	}
	s := open(b, filepath.Join(b.TempDir(), "s.db"))
	h := genlog.Header(1)
	err := s.Put(bg, h, func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(1, n) {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	db, err := s.reader(bg)
	if err != nil {
		b.Fatal(err)
	}
	var bare, raw, load time.Duration
	for b.Loop() {
		bare += timed(b, func() error { return selectAll(db) })
		raw += timed(b, func() error {
			in, err := s.Read(bg, h.ID)
			if err != nil {
				return err
			}
			for _, err := range in.Records() {
				if err != nil {
					return err
				}
			}
			return in.Close()
		})
		load += timed(b, func() error {
			_, _, err := store.Inspect(bg, s, h.ID, outcrop.Options{})
			return err
		})
	}
	b.ReportMetric(float64(n)*float64(b.N)/load.Seconds(), "events/s")
	b.ReportMetric(bare.Seconds()/raw.Seconds(), "raw-ratio")
	b.ReportMetric(bare.Seconds()/load.Seconds(), "load-ratio")
}

func timed(b *testing.B, f func() error) time.Duration {
	t := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(t)
}

func selectAll(db *sql.DB) error {
	rows, err := db.QueryContext(context.Background(), selectEvents, 1, 0, 1<<62)
	if err != nil {
		return err
	}
	defer rows.Close()
	var seq, count, at int64
	var typ, data, sources, op, line sql.RawBytes
	var ignorable sql.NullInt64
	for rows.Next() {
		if err := rows.Scan(&seq, &count, &typ, &at, &data, &sources, &op, &ignorable, &line); err != nil {
			return err
		}
	}
	return rows.Err()
}

// BenchmarkAppend appends batches of 100 events, each durable, against a bare
// transaction that inserts the very rows that these make, prepared beforehand.
// The floor is 0.8.
func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	s, hand := open(b, filepath.Join(dir, "s.db")), open(b, filepath.Join(dir, "hand.db"))
	l, err := s.Create(bg, genlog.Header(1))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	db, err := hand.writer(bg)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO sessions VALUES (1, 'x', x'', 1, 0, 0, 0, 0, '', 0, 0)`); err != nil {
		b.Fatal(err)
	}
	const batch = 100
	var all []outcrop.Record
	for r := range genlog.Records(1, 200_000) {
		all = append(all, r)
	}
	enc := wire.NewEncoder(wire.Plain)
	var ours, bare time.Duration
	at := 0
	for b.Loop() {
		if at+batch > len(all) {
			break
		}
		recs := all[at : at+batch]
		at += batch
		text, err := enc.Batch(nil, slices.Values(recs))
		if err != nil {
			b.Fatal(err)
		}
		var rows []row
		for line := range lines(text) {
			r, _, err := rowOf(line, nil)
			if err != nil {
				b.Fatal(err)
			}
			rows = append(rows, r)
		}
		byHand := func() error {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			stmt, err := tx.Prepare(insertEvent)
			if err != nil {
				return err
			}
			defer stmt.Close()
			for _, r := range rows {
				if err := r.insert(bg, stmt, 1); err != nil {
					return err
				}
			}
			return tx.Commit()
		}
		// The disk is faster now and slower then, so each goes first in turn.
		if at/batch%2 == 0 {
			bare += timed(b, byHand)
		}
		ours += timed(b, func() error { return l.Append(bg, slices.Values(recs)) })
		if at/batch%2 != 0 {
			bare += timed(b, byHand)
		}
	}
	b.ReportMetric(float64(at)/ours.Seconds(), "events/s")
	b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
}
