package monitor_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/monitor"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/worker"
	"github.com/outcrop-dev/outcrop/worker/metrics"
)

// get asks over the network, as a scraper does.
func get(t *testing.T, m *monitor.Monitor, path string) (int, string) {
	t.Helper()
	r, err := http.Get("http://" + m.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestHowAProcessIsCanBeAsked(t *testing.T) {
	var mu sync.Mutex
	health := monitor.Health{}
	m, err := monitor.Listen(monitor.Options{Addr: "127.0.0.1:0", Version: "v", Store: "memory:", Health: func(context.Context) monitor.Health {
		mu.Lock()
		defer mu.Unlock()
		return health
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.Serve()
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	type told struct {
		Schema   int
		OK       bool
		Version  string
		Store    string
		Sync     string
		Problems []string
	}
	for _, c := range []struct {
		h        monitor.Health
		path     string
		code     int
		ok       bool
		sync     string
		problems int
	}{
		{monitor.Health{}, "/healthz", 200, true, "unknown", 0},
		{monitor.Health{Sync: "always"}, "/readyz", 200, true, "always", 0},
		{monitor.Health{Sync: "not always", Problems: []string{"no \"servers\"", "late"}}, "/readyz", 503, false, "not always", 2},
		{monitor.Health{Problems: []string{"no servers"}}, "/healthz", 200, true, "unknown", 1},
	} {
		mu.Lock()
		health = c.h
		mu.Unlock()
		code, body := get(t, m, c.path)
		var got told
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if code != c.code || got.OK != c.ok || got.Sync != c.sync || len(got.Problems) != c.problems || got.Schema != 1 || got.Version != "v" || got.Store != "memory:" {
			t.Errorf("%s: %d %s", c.path, code, body)
		}
	}
	if code, _ := get(t, m, "/secrets"); code != 404 {
		t.Errorf("another path: %d", code)
	}
}

func TestWhatAWorkerDidIsCounted(t *testing.T) {
	m, err := monitor.Listen(monitor.Options{Addr: "127.0.0.1:0", Health: func(context.Context) monitor.Health { return monitor.Health{} }})
	if err != nil {
		t.Fatal(err)
	}
	m.Serve()
	defer m.Close()
	k, err := metrics.New(m.Meters())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []worker.Happening{
		{Kind: worker.Turned, Reason: outcrop.Completed, Took: 3 * time.Second},
		{Kind: worker.Turned, Reason: outcrop.Completed},
		{Kind: worker.Turned, Reason: outcrop.TurnError},
		{Kind: worker.Taken}, {Kind: worker.Taken, Err: &store.LockedError{}}, {Kind: worker.Taken, Err: errors.New("x")},
		{Kind: worker.Asked, Request: worker.Deliver}, {Kind: worker.Asked, Request: worker.Cancel, Code: worker.CodeFailed},
		{Kind: worker.Looked, Due: 7}, {Kind: worker.Looked, Err: errors.New("x")}, {Kind: worker.Gone}, {Kind: worker.Handed}, {Kind: worker.Woken},
	} {
		k.Worker(h)
	}
	k.Store("append", time.Millisecond, nil)
	k.Store("append", time.Millisecond, errors.New("x"))
	code, body := get(t, m, "/metrics")
	for _, want := range []string{
		`outcrop_turns_total{reason="completed"} 2`,
		`outcrop_turns_total{reason="error"} 1`,
		`outcrop_turn_duration_seconds_bucket{reason="completed",le="10"} 2`,
		`outcrop_turn_duration_seconds_sum{reason="completed"} 3`,
		`outcrop_sessions_opened_total{outcome="ok"} 1`,
		`outcrop_sessions_opened_total{outcome="elsewhere"} 1`,
		`outcrop_sessions_opened_total{outcome="error"} 1`,
		`outcrop_requests_total{code="OK",kind="deliver"} 1`,
		`outcrop_requests_total{code="FAILED",kind="cancel"} 1`,
		`outcrop_looks_total{outcome="error"} 1`,
		`outcrop_sessions_due 7`,
		`outcrop_sessions_lost_total 1`,
		`outcrop_store_duration_seconds_count{op="append",outcome="ok"} 1`,
		`outcrop_store_duration_seconds_count{op="append",outcome="error"} 1`,
		`go_goroutines `,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%d\n%s", code, body)
	}
}
