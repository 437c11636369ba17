// Package monitor tells other programs how this process is, over HTTP: /metrics
// in the format of Prometheus, /healthz and /readyz.
//
//	GET /healthz  200 while the process serves
//	GET /readyz   200 while it can do its work, else 503
//
// Both answer one JSON object: {"schema":1,"ok":…,"version":…,"store":…,"sync":…,
// "problems":[…]}; sync says whether the store's medium keeps what it has
// acknowledged: "always", "not always" or "unknown". Nothing is encrypted and
// nobody is asked for a name: serve addresses that only the right programs reach.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Health is how the process is.
type Health struct {
	Sync     string   // of the store's medium; "" counts as unknown
	Problems []string // why it cannot do its work; none: it can
}

// Options of a monitor.
type Options struct {
	Addr    string // HOST:PORT; port 0 is a free one
	Version string
	Store   string // its address
	// Health says how the process is. It answers soon.
	Health func(ctx context.Context) Health
	Logger *slog.Logger
}

// Monitor serves until Close.
type Monitor struct {
	o        Options
	registry *prometheus.Registry
	meters   *sdk.MeterProvider
	listener net.Listener
	server   *http.Server
	done     chan struct{}
}

// Listen listens; nothing is served before Serve.
func Listen(o Options) (*Monitor, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Monitor{o: o, registry: prometheus.NewRegistry(), done: make(chan struct{})}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ex, err := exporter.New(exporter.WithRegisterer(m.registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	m.meters = sdk.NewMeterProvider(sdk.WithReader(ex))
	if m.listener, err = net.Listen("tcp", o.Addr); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return m, nil
}

// Meters is where instruments are made.
func (m *Monitor) Meters() metric.MeterProvider { return m.meters }

// Addr is where it listens.
func (m *Monitor) Addr() string { return m.listener.Addr().String() }

// Handler serves the three paths.
func (m *Monitor) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { m.tell(w, r, false) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { m.tell(w, r, true) })
	return mux
}

// tell answers how the process is; strict: problems make it a 503.
func (m *Monitor) tell(w http.ResponseWriter, r *http.Request, strict bool) {
	ctx, stop := context.WithTimeout(r.Context(), 5*time.Second)
	defer stop()
	h := m.o.Health(ctx)
	if h.Sync == "" {
		h.Sync = "unknown"
	}
	ok := !strict || len(h.Problems) == 0
	b := answer.New().Bool("ok", ok).Text("version", m.o.Version).Text("store", m.o.Store).Text("sync", h.Sync).
		Raw("problems", answer.List(len(h.Problems), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, h.Problems[i]) })).End()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(append(b, '\n')) // who asked may be gone
}

// Serve serves until Close.
func (m *Monitor) Serve() {
	m.server = &http.Server{Handler: m.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(m.done)
		if err := m.server.Serve(m.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			m.o.Logger.Error("metrics are served no more", "err", err)
		}
	}()
}

// Close ends the serving.
func (m *Monitor) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	err := m.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, m.server.Close())
	}
	<-m.done
	return errors.Join(err, m.meters.Shutdown(ctx))
}
