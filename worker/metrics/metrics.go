// Package metrics makes OpenTelemetry instruments of what workers and stores do.
// Names are those of OpenTelemetry; an exporter for Prometheus writes them with
// underscores and units:
//
//	outcrop.turns               turns that ended, by reason
//	outcrop.turn.duration       seconds from turn/start to turn/end
//	outcrop.sessions.held       sessions that this process holds
//	outcrop.sessions.running    those that hold a slot
//	outcrop.sessions.waiting    sessions that wait for a slot
//	outcrop.sessions.opened     sessions taken, by outcome
//	outcrop.sessions.lost       sessions lost to somebody else while they were worked on
//	outcrop.open.duration       seconds to take and load a session
//	outcrop.requests            requests of other processes, by kind and code
//	outcrop.looks               looks through the store, by outcome
//	outcrop.look.duration       seconds of a look
//	outcrop.sessions.due        sessions that the last look put into the queue
//	outcrop.store.duration      seconds of an operation of the store, by op and outcome
package metrics

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/worker"
)

// Metrics are the instruments of one process. The methods may be called from any
// goroutine.
type Metrics struct {
	meter                                             metric.Meter
	turns, opened, lost, requests, looks              metric.Int64Counter
	turnSeconds, openSeconds, lookSeconds, opsSeconds metric.Float64Histogram
	due                                               metric.Int64Gauge
}

// seconds are the bounds of durations: from a write on a fast disk to a long turn.
var seconds = metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 1800)

// New makes the instruments of a provider.
func New(p metric.MeterProvider) (*Metrics, error) {
	m := &Metrics{meter: p.Meter("github.com/outcrop-dev/outcrop")}
	var errs []error
	counter := func(name, what string) metric.Int64Counter {
		c, err := m.meter.Int64Counter(name, metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	histogram := func(name, what string) metric.Float64Histogram {
		h, err := m.meter.Float64Histogram(name, metric.WithDescription(what), metric.WithUnit("s"), seconds)
		errs = append(errs, err)
		return h
	}
	m.turns = counter("outcrop.turns", "Turns that ended, by reason.")
	m.turnSeconds = histogram("outcrop.turn.duration", "Time from turn/start to turn/end.")
	m.opened = counter("outcrop.sessions.opened", "Sessions taken, by outcome.")
	m.openSeconds = histogram("outcrop.open.duration", "Time to take and load a session.")
	m.lost = counter("outcrop.sessions.lost", "Sessions lost to somebody else while they were worked on.")
	m.requests = counter("outcrop.requests", "Requests of other processes that were answered, by kind and code.")
	m.looks = counter("outcrop.looks", "Looks through the store, by outcome.")
	m.lookSeconds = histogram("outcrop.look.duration", "Time of a look through the store.")
	m.opsSeconds = histogram("outcrop.store.duration", "Time of an operation of the store.")
	due, err := m.meter.Int64Gauge("outcrop.sessions.due", metric.WithDescription("Sessions with something to do that the last look found."))
	m.due = due
	return m, errors.Join(append(errs, err)...)
}

// Worker takes what a worker did: it is worker.Options.Observe.
func (m *Metrics) Worker(h worker.Happening) {
	ctx, took := context.Background(), h.Took.Seconds()
	switch h.Kind {
	case worker.Turned:
		by := metric.WithAttributes(attribute.String("reason", string(h.Reason)))
		m.turns.Add(ctx, 1, by)
		m.turnSeconds.Record(ctx, took, by)
	case worker.Taken:
		by := metric.WithAttributes(attribute.String("outcome", opening(h.Err)))
		m.opened.Add(ctx, 1, by)
		if h.Err == nil {
			m.openSeconds.Record(ctx, took)
		}
	case worker.Gone:
		m.lost.Add(ctx, 1)
	case worker.Asked:
		code := h.Code
		if code == "" {
			code = "OK"
		}
		m.requests.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", string(h.Request)), attribute.String("code", code)))
	case worker.Looked:
		m.looks.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome(h.Err))))
		m.lookSeconds.Record(ctx, took)
		if h.Err == nil {
			m.due.Record(ctx, int64(h.Due))
		}
	}
}

// Store takes one operation of a store.
func (m *Metrics) Store(op string, took time.Duration, err error) {
	m.opsSeconds.Record(context.Background(), took.Seconds(),
		metric.WithAttributes(attribute.String("op", op), attribute.String("outcome", outcome(err))))
}

// Watch makes gauges of what a worker does at the moment.
func (m *Metrics) Watch(w *worker.Worker) error {
	gauge := func(name, what string) (metric.Int64ObservableGauge, error) {
		return m.meter.Int64ObservableGauge(name, metric.WithDescription(what))
	}
	held, err1 := gauge("outcrop.sessions.held", "Sessions that this process holds.")
	running, err2 := gauge("outcrop.sessions.running", "Sessions that hold a slot.")
	waiting, err3 := gauge("outcrop.sessions.waiting", "Sessions that wait for a slot.")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	_, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		l := w.Load()
		o.ObserveInt64(held, int64(l.Held))
		o.ObserveInt64(running, int64(l.Running))
		o.ObserveInt64(waiting, int64(l.Waiting))
		return nil
	}, held, running, waiting)
	return err
}

func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

func opening(err error) string {
	switch {
	case errors.Is(err, store.ErrLocked), errors.Is(err, store.ErrMoved):
		return "elsewhere"
	}
	return outcome(err)
}
